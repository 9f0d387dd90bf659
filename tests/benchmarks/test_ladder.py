"""The ladder: what it lists can be run, and what it prints has all its keys. No times are asserted.

Two rungs are run here. `.ci/run` runs them all, and `.ci/gates/benchmark.py` looks at them in the same way.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.__main__ import main
from benchmarks.harness.ladder import LADDER
from benchmarks.harness.record import record

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


@pytest.mark.parametrize("name", ["acker", "admission"])
def test_quick_run_prints_whole_records(name):
    checked = subprocess.run(
        [sys.executable, ROOT / ".ci/gates/benchmark.py", name], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert checked.returncode == 0, checked.stderr
    assert {json.loads(line)["bench"] for line in checked.stdout.splitlines()} == {name}


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
    assert [entry["case"] for entry in records("admission", "--case", "slow-one")] == ["slow-one"]


def test_what_is_unsteady_is_measured_once_more(monkeypatch, capsys):
    runs = iter([[2.0, 1.0, 3.0], [2.0, 2.0, 2.0]])

    class Shaky(NamedTuple):
        name: str = "shaky"

        def run(self, settings):
            yield record("shaky", "case", next(runs), "rows/s")

    monkeypatch.setattr("benchmarks.__main__.find", lambda name: Shaky())
    assert main(["shaky", "--json"]) == 0
    said = capsys.readouterr()
    assert [json.loads(line).get("unsteady") for line in said.out.splitlines()] == [True, None]
    assert said.err == "once more, as runs differ by more than a quarter: case\n"
