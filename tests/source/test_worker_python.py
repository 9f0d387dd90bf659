"""Which Python Spark's processes run."""

import os
import sys

import pytest

from pystorm_source.source.worker_python import ensure_worker_python


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "environ", os.environ.copy())
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
