"""What the garbage collector looks at in a Python process of Spark.

Spark's daemon collects all generations after each task of a process that it uses again. With numpy, pyarrow and a
topology's modules that is 200,000 objects, nearly all of which live as long as the process does: 15 to 30 ms of a core
a task, more than a task of few rows needs otherwise.
"""

import gc
import os

_done: set[int] = set()


def spare_modules() -> None:
    """Takes what the process has by now, modules above all, out of the garbage collector's sight, once per process.

    Does nothing outside of a Python process that Spark uses again: no other collects after each task. Order: behind
    the imports and before a worker is built. Of what is out of sight a cycle is never freed, and a worker with its
    components is one.
    """
    process = os.getpid()
    if process not in _done and os.environ.get("SPARK_REUSE_WORKER"):
        _done.add(process)
        gc.freeze()
