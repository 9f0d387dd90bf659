"""Notebooks are stored without outputs. (`.ci/run` runs them from top to bottom, with nbmake.)"""

import ast
import json

import pytest

from tests.docs.pages import NOTEBOOKS

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def test_there_is_one():
    assert NOTEBOOKS


@each_notebook
def test_outputs_are_stripped(path):
    for number, cell in enumerate(json.loads(path.read_text())["cells"]):
        assert not cell.get("outputs"), f"cell {number} has outputs: clear them before committing"
        assert cell.get("execution_count") is None, f"cell {number} has a number"


@each_notebook
def test_it_opens_in_databricks_and_jupyter(path):
    """nbformat 4.5 with a Python kernel, and no magic of either: cells are plain Python."""
    notebook = json.loads(path.read_text())
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert notebook["metadata"]["kernelspec"]["name"] == "python3"
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code":
            ast.parse("".join(cell["source"]), filename=f"cell {number}")
