"""Python reads this when it starts with the folder on PYTHONPATH: Spark's Python daemons of a test session begin warm.

Spark forks a process from a daemon to create a source, to plan a read, to run a task, to write a sink. Each process
would import the packages below again: a quarter of a second of a core, a few hundred times. Here the daemon imports
them before it forks. Each process still imports the packages of this project, as at users'.
"""

import contextlib
import importlib
import sys

PACKAGES = ("asyncio", "concurrent.futures.thread", "msgspec", "numpy", "pyarrow", "pyarrow.compute", "ssl", "yaml")

if "pyspark.daemon" in sys.orig_argv:
    for package in PACKAGES:
        with contextlib.suppress(ImportError):
            importlib.import_module(package)
