"""Runs one benchmark once, small and without peers, and looks at the lines that it prints: `benchmark.py NAME`."""

import json
import subprocess
import sys

KEYS = {"bench", "case", "value", "unit", "peer", "ratio", "asked", "reached", "runs", "python"}


def main(name: str) -> str:
    """What is wrong; empty if nothing is."""
    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--json", "--no-peers"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    if done.returncode != 0:
        return f"exit status {done.returncode}"
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    if not entries:
        return "it printed nothing"
    for entry in entries:
        if missing := KEYS - entry.keys():
            return f"{entry.get('case')}: the keys {sorted(missing)} are missing"
        if entry["value"] is None or entry["value"] < 0:
            return f"{entry['case']}: its value is {entry['value']}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) or 0)
