"""Probes a Python interpreter for Spark: this file is run with it and prints one JSON object.

``python probe.py``, in the folder and with the environment that Spark's own processes have. Imports nothing of this
package, because the probed interpreter may not have it; a missing module is an answer, never an exception. An old
interpreter must be recognised by its version, not by a syntax error: so nothing here is newer than Python 3.7.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import pkgutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

MODULE_TIMEOUT_SECONDS = 60

# Spark's look-up for each module named pyspark_*, with the `try` that it lacks.
_LOOK_UP = """
import sys
sys.path[:] = {path!r}
from importlib import import_module
module = import_module({name!r})
from pyspark.sql.datasource import DataSource
if hasattr(module, "DefaultSource") and issubclass(module.DefaultSource, DataSource):
    print("source:", module.DefaultSource.name(), getattr(module.DefaultSource, "reason", ""))
"""


def probe() -> dict[str, Any]:
    """The facts; if something cannot be imported, its version is None and ``*_error`` has the reason."""
    facts: dict[str, Any] = {"executable": sys.executable, "python": list(sys.version_info[:3])}
    for name in ("pyarrow", "pyspark"):
        facts[name], facts[f"{name}_error"] = _version(name)
    facts["admission_control"] = _has_admission_control()
    facts["core_error"] = _core_error()
    names = sorted(info.name for info in pkgutil.iter_modules() if info.name.startswith("pyspark_"))
    with ThreadPoolExecutor(max_workers=4) as pool:
        facts["modules"] = dict(zip(names, pool.map(_look_up, names)))  # noqa: B905  (3.10's strict)
    return facts


def _version(name: str) -> tuple[str | None, str | None]:
    try:
        return importlib.import_module(name).__version__, None
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"


def _has_admission_control() -> bool:
    """Whether Spark hands a read limit to Python sources (from 4.2 on): a feature, never a version."""
    try:
        from pyspark.sql.datasource import DataSourceStreamReader

        importlib.import_module("pyspark.sql.streaming.datasource")
    except Exception:
        return False
    return len(inspect.signature(DataSourceStreamReader.latestOffset).parameters) == 3


def _core_error() -> str | None:
    try:
        importlib.import_module("pystorm_source.errors.compiled").require_core()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def _look_up(name: str) -> dict[str, str | None]:
    """Imports one ``pyspark_*`` module in a separate process, because it may do anything.

    ``source`` is the name of the data source in it, ``error`` the exception that would end Spark's look-up, and
    ``reason`` why our own module has only a placeholder.
    """
    code = _LOOK_UP.format(path=sys.path, name=name)
    found: dict[str, str | None] = {"source": None, "error": None, "reason": None}
    try:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=MODULE_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        found["error"] = f"its import takes longer than {MODULE_TIMEOUT_SECONDS} s"
        return found
    if done.returncode != 0:
        found["error"] = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    for line in done.stdout.splitlines():
        if line.startswith("source: "):
            _, found["source"], reason = line.split(" ", 2)
            found["reason"] = reason or None
    return found


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # as for Spark's processes, which are started by `python -m`
    print(json.dumps(probe()))
