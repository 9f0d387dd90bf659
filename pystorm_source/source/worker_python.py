"""The Python that Spark's processes run."""

import os
import sys


def ensure_worker_python() -> dict[str, str]:
    """Lets Spark run its Python processes with the interpreter of this one, unless the user has chosen another one.

    Sets ``PYSPARK_PYTHON`` and ``PYSPARK_DRIVER_PYTHON`` to ``sys.executable`` if they are not set. Otherwise Spark
    would run ``python3`` of ``PATH``: often another version, without pyarrow, and the user only sees "Python worker
    failed to connect back". Both count: a source that Spark finds by itself (``pyspark_pystorm``) is run by
    ``PYSPARK_DRIVER_PYTHON`` if that is set, in the executors too; a registered one by ``PYSPARK_PYTHON``.

    Call it before the first Spark session of the process; later the JVM has its own copy of the environment.

    Returns:
        The variables that were set by this call.
    """
    chosen = os.environ.get("PYSPARK_PYTHON") or sys.executable
    added = {}
    if not os.environ.get("PYSPARK_PYTHON"):
        added["PYSPARK_PYTHON"] = chosen
    if not os.environ.get("PYSPARK_DRIVER_PYTHON"):
        added["PYSPARK_DRIVER_PYTHON"] = chosen
    os.environ.update(added)
    return added
