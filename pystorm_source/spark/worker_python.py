"""The Python that Spark's processes run."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUICK = "pystorm-python"
"""A script of this package, installed beside the interpreter."""

_set_by_default: str | None = None
"""What ``ensure_worker_python`` has put into ``PYSPARK_PYTHON`` because the user had chosen none."""


def quick_python() -> str:
    """The program that starts this interpreter with pyspark from site-packages, for ``PYSPARK_PYTHON``.

    Spark's own ``pyspark.zip``, first on the path of its Python processes, has no bytecode: each start compiles it.

    Returns:
        The path of ``pystorm-python`` beside ``sys.executable``; ``sys.executable`` if it is not installed there.
    """
    program = Path(sys.executable).with_name(QUICK)
    return str(program) if os.access(program, os.X_OK) else sys.executable


def ensure_worker_python(wanted: str = "") -> dict[str, str]:
    """Makes Spark run its Python processes with this interpreter, unless the user has chosen another one.

    Sets ``PYSPARK_PYTHON`` and ``PYSPARK_DRIVER_PYTHON`` to ``sys.executable`` if they are not set. Otherwise Spark
    would run ``python3`` of ``PATH``: often another version, without pyarrow, and the user only sees "Python worker
    failed to connect back". Both count: a source that Spark finds by itself (``pyspark_pystorm``) is run by
    ``PYSPARK_DRIVER_PYTHON`` if that is set, in the executors too; a registered one by ``PYSPARK_PYTHON``.

    Call it before the first Spark session of the process; later the JVM has its own copy of the environment.

    Args:
        wanted: to be set instead of ``sys.executable``, such as ``quick_python()``.

    Returns:
        The variables that were set by this call.
    """
    global _set_by_default
    chosen = os.environ.get("PYSPARK_PYTHON") or wanted or sys.executable
    added = {}
    if not os.environ.get("PYSPARK_PYTHON"):
        added["PYSPARK_PYTHON"] = chosen
        _set_by_default = None if wanted else chosen
    if not os.environ.get("PYSPARK_DRIVER_PYTHON"):
        added["PYSPARK_DRIVER_PYTHON"] = chosen
    os.environ.update(added)
    return added


def is_default_python() -> bool:
    """Whether ``PYSPARK_PYTHON`` is what ``ensure_worker_python`` has set because the user chose nothing."""
    return _set_by_default is not None and os.environ.get("PYSPARK_PYTHON") == _set_by_default


def use_this_python(spark: "SparkSession") -> None:
    """If the user chose no Python and all runs on this machine, makes the session run this one, in its quickest form,
    instead of ``python3`` of PATH. ``prepare_spark()`` before the session is no choice: it cannot know the master."""
    ensure_worker_python()
    if not is_default_python():
        return
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect has none; the server chooses
        return
    if (context.master or "").startswith("local") and context.pythonExec in ("python3", sys.executable):
        context.pythonExec = quick_python()
