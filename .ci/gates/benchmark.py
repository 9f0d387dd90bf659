"""Runs one benchmark once, small and without peers, and looks at the lines that it prints: `benchmark.py NAME`."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.harness.record import KEYS  # noqa: E402
from testbed.spark_classes import submit_options  # noqa: E402


def main(name: str) -> str:
    """What is wrong; empty if nothing is."""
    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--runs", "1", "--json", "--no-peers"]
    # No figure is looked at: JVMs that start quickly.
    environment = {"SPARK_SUBMIT_OPTS": submit_options(), **os.environ}
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, env=environment)
    print(done.stdout, end="")
    if done.returncode != 0:
        return f"exit status {done.returncode}"
    entries = [json.loads(line) for line in done.stdout.splitlines()]
    cases = [entry["case"] for entry in entries]
    if not entries or len(set(cases)) < len(cases):
        return f"no case, or one twice: {cases}"
    return "; ".join(f"{entry['case']}: {wrong}" for entry in entries if (wrong := wrong_with(name, entry)))


def wrong_with(name: str, entry: dict[str, Any]) -> str:
    """What is wrong with a record; empty if nothing is."""
    if tuple(entry)[: len(KEYS)] != KEYS:
        return f"its keys are {list(entry)}"
    if entry["bench"] != name or not entry["cpu"] or not entry["python"]:
        return f"bench, cpu or python of {entry}"
    if entry["value"] is None or entry["value"] < 0:
        return f"its value is {entry['value']}"
    return ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) or 0)
