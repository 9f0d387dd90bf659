"""Reduces the garbage collector's work in a Python process of Spark.

Spark's daemon collects all generations after each task of a process that it reuses. With numpy, pyarrow and a
topology's modules it traverses 200,000 objects, most of them as old as the process: 15 to 30 ms of a core per task,
more than the rest of a task with few rows.
"""

import gc
import os

_done: set[int] = set()


def spare_modules() -> None:
    """Hides all objects so far, mostly modules, from the garbage collector, once per process.

    Does nothing outside of a Python process that Spark reuses: no other collects after each task. Order: after the
    imports and before a worker is built. A hidden cycle is never freed, and a worker with its components is one.
    """
    process = os.getpid()
    if process not in _done and os.environ.get("SPARK_REUSE_WORKER"):
        _done.add(process)
        gc.freeze()
