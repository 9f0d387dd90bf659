"""How long a Python process of Spark takes to start: Spark waits ten seconds for it, and then the query fails."""

import os
import subprocess
import time

RUNNER = "pyspark.sql.streaming.python_streaming_source_runner"
"""The process that asks a source for offsets. It imports most of pyspark, and pyarrow, before it answers."""
SPARK_WAITS_SECONDS = 10
SLOW_SECONDS = 4.0
"""A start that takes longer on a quiet machine may miss Spark's ten seconds on a busy one. Less: old and small machines
are warned for nothing."""
MOST_SECONDS = 60


def seconds_to_start(program: str, path: str) -> float | None:
    """Blocks until ``program`` has imported Spark's runner, with ``path`` first on PYTHONPATH as for Spark.

    None if it cannot, or takes longer than a minute.
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [path, os.environ.get("PYTHONPATH")]))}
    began = time.monotonic()
    try:
        done = subprocess.run(
            [program, "-c", f"import {RUNNER}"], capture_output=True, timeout=MOST_SECONDS, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return time.monotonic() - began if done.returncode == 0 else None
