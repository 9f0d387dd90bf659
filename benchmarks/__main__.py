"""``python -m benchmarks NAME [--quick] [--json] [--runs N] [--no-peers] [--case C]``; ``--list`` names them.

Prints a table, or with ``--json`` one JSON line per case. The exit status is 0 whether or not a figure is reached.
"""

import argparse
import json
import sys

from benchmarks.harness.figures import report
from benchmarks.harness.ladder import LADDER, Benchmark, Settings, find
from benchmarks.harness.machine import facts
from benchmarks.harness.record import Record, table


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line asks for. Returns 0, or 2 if it asks for something unknown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", help="the benchmark to run")
    parser.add_argument("--list", action="store_true", help="the benchmarks that there are")
    parser.add_argument("--machine", action="store_true", help="what is measured on, as one JSON object")
    parser.add_argument("--report", action="store_true", help="write the pages' figures from benchmarks/results")
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works, not how quick it is")
    parser.add_argument("--json", action="store_true", help="one JSON line per case")
    parser.add_argument("--runs", type=int, help="runs per case (medians are printed)")
    parser.add_argument("--case", action="append", default=[], help="of some benchmarks: only this one, or these")
    parser.add_argument("--no-peers", action="store_true", help="only ours: nothing is downloaded")
    asked = parser.parse_args(arguments)
    if asked.list:
        for rung in LADDER:
            print(f"{rung.name:<14} {rung.meaning}")
        return 0
    if asked.machine:
        print(json.dumps(facts(), indent=1))
        return 0
    if asked.report:
        print(*(page.name for page in report()), sep="\n")
        return 0
    names = ", ".join(rung.name for rung in LADDER)
    if asked.name is None:
        parser.error(f"name a benchmark: {names}")
    benchmark = find(asked.name)
    if benchmark is None:
        parser.error(f"there is no such benchmark; there are {names}. Given: {asked.name!r}")
    if asked.runs is not None and asked.runs < 1:
        parser.error(f"--runs is at least 1. Given: {asked.runs!r}")
    settings = Settings(asked.quick, asked.runs, not asked.no_peers, frozenset(asked.case))
    seen = _measured(benchmark, settings, asked.json)
    unsteady = [entry["case"] for entry in seen if entry.get("unsteady")]
    if unsteady and not asked.quick:
        print(f"once more, as runs differ by more than a quarter: {', '.join(unsteady)}", file=sys.stderr, flush=True)
        seen += _measured(benchmark, settings, asked.json)
    if not asked.json:
        print(table(seen))
        for entry in seen:
            if "note" in entry:
                print(f"{entry['case']}: {entry['note']}")
    return 0


def _measured(benchmark: Benchmark, settings: Settings, as_json: bool) -> list[Record]:
    """Runs a benchmark. ``as_json``: prints each record as soon as it is there."""
    seen = []
    for entry in benchmark.run(settings):
        seen.append(entry)
        if as_json:
            print(json.dumps(entry), flush=True)
    return seen


if __name__ == "__main__":
    sys.exit(main())
