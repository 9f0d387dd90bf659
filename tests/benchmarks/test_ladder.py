"""The ladder: what it lists runs, and what it prints has all its keys. No times are asserted.

``through_spark`` and ``instructions`` take a minute each and are run by CI.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.harness.ladder import LADDER
from benchmarks.harness.record import KEYS

ROOT = Path(__file__).resolve().parents[2]


def benchmarks(*arguments):
    command = [sys.executable, "-m", "benchmarks", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100)


def records(*arguments):
    done = benchmarks(*arguments, "--quick", "--json", "--runs", "1", "--no-peers")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_list_names_every_benchmark():
    done = benchmarks("--list")
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in done.stdout.splitlines()] == [benchmark.name for benchmark in LADDER]


@pytest.mark.parametrize("name", [benchmark.name for benchmark in LADDER])
def test_every_listed_module_can_be_run(name):
    source = (ROOT / "benchmarks/rungs" / f"{name}.py").read_text()
    assert "def run(settings: Settings) -> Iterator[Record]:" in source


FEW = ["broadcast", "planning"]
MORE = ["queues", "core", "topologies", "acker", "latency", "memory"]


@pytest.mark.parametrize("name", [*FEW, *(pytest.param(name, marks=pytest.mark.campaign) for name in MORE)])
def test_quick_run_prints_whole_records(name):
    printed = records(name)
    assert printed
    for entry in printed:
        assert tuple(entry)[: len(KEYS)] == KEYS
        assert entry["bench"] == name
        assert entry["value"] > 0 or entry["case"] == "spout-id-output-slow-consumer"
        assert entry["runs"] == 1
        assert entry["cpu"]
        assert entry["python"]
        assert entry["reached"] in (True, False, None)
        assert (entry["reached"] is None) == (entry["asked"] is None or "note" in entry)
    assert len({entry["case"] for entry in printed}) == len(printed)


def test_a_peer_that_was_not_measured_is_null_and_says_why():
    entry = next(entry for entry in records("core") if entry["case"] == "id-through-pipe")
    assert (entry["peer"], entry["peer_version"]) == ("pystorm", "3.1.4")
    assert (entry["peer_value"], entry["ratio"], entry["reached"]) == (None, None, None)
    assert "--no-peers" in entry["note"]


def test_table_for_people():
    done = benchmarks("memory", "--quick")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0].split()[:3] == ["case", "value", "unit"]


def test_machine_facts_are_json():
    done = benchmarks("--machine")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["cores"] >= 1
    assert facts["packages"]["pyarrow"]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [(["nonesuch"], "Given: 'nonesuch'"), ([], "name a benchmark"), (["core", "--runs", "0"], "Given: 0")],
)
def test_wrong_arguments_are_refused(arguments, told):
    done = benchmarks(*arguments)
    assert done.returncode == 2
    assert told in done.stderr


def test_a_case_alone():
    assert [entry["case"] for entry in records("broadcast", "--case", "pipeline")] == ["pipeline-disruptor"]
