"""Python runs this at its start if the folder is on PYTHONPATH, to warm up Spark's Python daemons in a test session.

Spark forks a process from a daemon to create a source, to plan a read, to run a task, to write a sink. Each process
would import the packages below again: 0.4 s of a core, several hundred times. Here the daemon imports them before it
forks. In users' jobs each process imports them itself, and so do, here, processes that Spark does not fork: for
offsets of a source, for commits of a sink, and for all jobs that a test starts by itself.
"""

import contextlib
import importlib
import sys

PACKAGES = (
    *("asyncio", "concurrent.futures.thread", "msgspec", "numpy", "pyarrow", "pyarrow.compute", "ssl", "yaml"),
    *("pyspark.worker", "pyspark.sql.worker.create_data_source", "pyspark.sql.worker.plan_data_source_read"),
    "pystorm_source.source.data_source",
)

if "pyspark.daemon" in sys.orig_argv:
    for package in PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
