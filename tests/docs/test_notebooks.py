"""Notebooks run from top to bottom, in a kernel and with a Spark of their own, and are stored without outputs."""

import json
import os
import sys

import pytest

from tests.docs.pages import NOTEBOOKS, ROOT

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def test_there_is_one():
    assert NOTEBOOKS


@each_notebook
def test_outputs_are_stripped(path):
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        assert not cell.get("outputs"), f"cell {number} has outputs: clear them before committing"
        assert cell.get("execution_count") is None, f"cell {number} has a number"


@each_notebook
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    # Whatever `python3` kernel the machine knows: ours is the one of this interpreter.
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "Python 3", "language": "python"}))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path / "jupyter"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=400, kernel_name="python3", resources=where).execute()
