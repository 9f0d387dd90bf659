"""Installs what a lock of requirements/ names with the pip of this Python, and shows each step.

``python .ci/install.py requirements/demo.txt``. It shows one line that changes on a terminal, otherwise a line
per step; if pip fails, all that pip printed, and its exit status.
"""

import re
import subprocess
import sys
import time

DOWNLOAD = re.compile(r"\s+(Downloading|Using cached) (\S+?)-(\d\S*?)(?:-\S+|\.tar\.gz|\.zip) \((.+)\)")
PINNED = ("--require-hashes", "--no-deps", "--no-build-isolation")
"""A lock names every package. Spark comes as sources, which the setuptools of requirements/build.txt builds:
otherwise pip would get one that no lock names."""
WHEEL = re.compile(r"\s*Building wheel for (\S+) .*: started")
UNPACK = re.compile(r"Installing collected packages: (.+)")


def step_of(line: str) -> str:
    """What that line of pip's means for people; empty: nothing new."""
    if found := DOWNLOAD.match(line):
        how, name, version, size = found.groups()
        return f"{name} {version}, {size}" + (" (cached)" if how == "Using cached" else "")
    if found := WHEEL.match(line):
        return f"{found[1]}: made into a wheel"
    if found := UNPACK.match(line):
        return f"{len(found[1].split(','))} packages: unpacking"
    return ""


def main(arguments: list[str]) -> int:
    """Blocking, until pip is done; its exit status."""
    pip = [sys.executable, "-m", "pip", "install", *PINNED, "--disable-pip-version-check", "--progress-bar", "off"]
    terminal = sys.stdout.isatty()
    began, seen, steps = time.monotonic(), [], 0
    with subprocess.Popen(
        [*pip, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            seen.append(line)
            if step := step_of(line):
                steps += 1
                text = f"  {time.monotonic() - began:4.0f} s  {step}"
                print(f"\r\033[2K{text[:78]}" if terminal else text, end="" if terminal else "\n", flush=True)
    if terminal and steps:
        print("\r\033[2K", end="", flush=True)
    if process.returncode:
        sys.stderr.writelines(seen)
    return process.returncode


if __name__ == "__main__":
    try:
        sys.exit(main(["-r", sys.argv[1]]))
    except KeyboardInterrupt:
        sys.exit(130)
