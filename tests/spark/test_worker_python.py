"""Which Python Spark's processes run."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyspark
import pytest

from pystorm_source.spark.worker_python import ensure_worker_python, quick_python, use_this_python

SCRIPT = Path(__file__).resolve().parents[2] / "pystorm_source" / "spark" / "pystorm-python"


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
    monkeypatch.setattr("pystorm_source.spark.worker_python._set_by_default", None)
    os.environ.pop("PYSPARK_PYTHON", None)
    os.environ.pop("PYSPARK_DRIVER_PYTHON", None)


def test_unset_becomes_this_interpreter():
    assert ensure_worker_python() == {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    assert ensure_worker_python() == {}


def test_a_choice_is_kept():
    os.environ["PYSPARK_PYTHON"] = "./environment/bin/python"
    assert ensure_worker_python() == {"PYSPARK_DRIVER_PYTHON": "./environment/bin/python"}
    os.environ["PYSPARK_DRIVER_PYTHON"] = "jupyter"
    assert ensure_worker_python() == {}
    assert os.environ["PYSPARK_DRIVER_PYTHON"] == "jupyter"


def test_the_quick_program_is_this_python_unless_it_is_not_installed(monkeypatch, tmp_path):
    python = tmp_path / "python"
    monkeypatch.setattr(sys, "executable", str(python))
    assert quick_python() == str(python)
    (tmp_path / "pystorm-python").touch(mode=0o755)
    assert quick_python() == str(tmp_path / "pystorm-python")
    assert ensure_worker_python(quick_python())["PYSPARK_PYTHON"] == str(tmp_path / "pystorm-python")
    assert ensure_worker_python() == {}


def session(master: str, python: str) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(master=master, pythonExec=python))


@pytest.mark.parametrize("before", ["python3", sys.executable])
def test_a_local_session_takes_the_quick_program_though_the_default_was_set_before(monkeypatch, before):
    monkeypatch.setattr("pystorm_source.spark.worker_python.quick_python", lambda: "/env/bin/pystorm-python")
    if before == sys.executable:
        ensure_worker_python()  # as prepare_spark() does, before there is a session whose master it could ask
    local, cluster = session("local[2]", before), session("spark://host:7077", before)
    use_this_python(local)
    use_this_python(cluster)
    assert (local.sparkContext.pythonExec, cluster.sparkContext.pythonExec) == ("/env/bin/pystorm-python", before)


def test_a_local_session_keeps_the_python_that_was_chosen(monkeypatch):
    monkeypatch.setattr("pystorm_source.spark.worker_python.quick_python", lambda: "/env/bin/pystorm-python")
    os.environ["PYSPARK_PYTHON"] = sys.executable
    local = session("local[2]", sys.executable)
    use_this_python(local)
    assert local.sparkContext.pythonExec == sys.executable


def imported_from(program: Path, path: str) -> dict[str, Any]:
    """Where that program imports from, with that PYTHONPATH."""
    code = "import json, py4j, pyspark, sys; print(json.dumps([pyspark.__file__, py4j.__file__, sys.prefix, sys.path]))"
    done = subprocess.run([program, "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return dict(zip(["pyspark", "py4j", "prefix", "path"], json.loads(done.stdout), strict=True))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The script beside an interpreter with a space in its path, in an environment like this one."""
    home = tmp_path / "my environment"
    (home / "bin").mkdir(parents=True)
    shutil.copy(SCRIPT, home / "bin")
    (home / "bin" / "python3").symlink_to(sys.executable)
    (home / "pyvenv.cfg").write_text((Path(sys.prefix) / "pyvenv.cfg").read_text())
    (home / "lib").symlink_to(Path(sys.prefix) / "lib")
    return home / "bin" / SCRIPT.name


def test_a_spark_of_pip_is_imported_from_site_packages(program):
    """Spark's own PYTHONPATH has the zips of pyspark and py4j and the jar of its core first."""
    home = Path(pyspark.__file__).parent
    zips = sorted(map(str, (home / "python" / "lib").glob("*.zip")), reverse=True)
    assert len(zips) == 2
    path = os.pathsep.join([*zips, str(home / "jars" / "spark-core_2.13-4.3.0.jar"), "/a folder", "/b*"])
    assert ".zip" in imported_from(Path(sys.executable), path)["pyspark"]
    found = imported_from(program, path)
    assert ".zip" not in found["pyspark"] + found["py4j"] and "site-packages" in found["pyspark"]
    assert found["prefix"] == str(program.parents[1])
    assert found["path"][1:3] == ["/a folder", "/b*"] and not any("spark-core" in entry for entry in found["path"])


def test_another_pyspark_on_the_path_changes_nothing(program, tmp_path):
    """It would come before site-packages once the zip is gone, and may have another version."""
    (tmp_path / "other" / "pyspark").mkdir(parents=True)
    (tmp_path / "other" / "pyspark" / "__init__.py").touch()
    zips = sorted(map(str, (Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip")))
    path = os.pathsep.join([*zips, str(tmp_path / "other")])
    assert ".zip" in imported_from(program, path)["pyspark"]


def test_another_distribution_is_imported_from_its_folder(program, tmp_path):
    """Never from site-packages, which may hold another version."""
    folder = tmp_path / "spark" / "python"
    (folder / "pyspark").mkdir(parents=True)
    (folder / "pyspark" / "__init__.py").touch()
    (folder / "lib").mkdir()
    for name in ("pyspark.zip", "py4j-0.10-src.zip"):
        with zipfile.ZipFile(folder / "lib" / name, "w") as archive:
            archive.writestr(f"{name.split('.')[0].split('-')[0]}/__init__.py", "")
    path = os.pathsep.join(str(folder / "lib" / name) for name in ("pyspark.zip", "py4j-0.10-src.zip"))
    found = imported_from(program, os.pathsep.join([path, str(folder)]))  # many set PYTHONPATH to it
    assert found["pyspark"] == str(folder / "pyspark" / "__init__.py")
    assert imported_from(program, path)["pyspark"] == found["pyspark"]
    assert found["py4j"] == str(folder / "lib" / "py4j-0.10-src.zip" / "py4j" / "__init__.py")
    (folder / "pyspark" / "__init__.py").unlink()
    assert imported_from(program, path)["pyspark"] == str(folder / "lib" / "pyspark.zip" / "pyspark" / "__init__.py")


def test_arguments_exit_status_and_an_empty_path_go_through(program):
    code = "import sys; sys.exit(len(sys.argv[1]))"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    assert subprocess.run([program, "-c", code, "a b: *"], env=environment).returncode == 6
