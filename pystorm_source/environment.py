"""The environment that Spark is started in: its Java, and the Python that its processes run."""

from pystorm_source.spark.java import Java, ensure_java
from pystorm_source.spark.worker_python import ensure_worker_python, quick_python


def prepare_spark(local: bool = False) -> Java:
    """Prepares this process for Spark: a suitable Java, and workers that run this Python. Call it before Spark starts.

    >>> prepare_spark(local=True).major >= 17
    True

    Args:
        local: everything runs on this machine. Then ``pystorm-python``, which is next to this Python, may start Spark's
            Python processes, two to three times as quickly (docs/DEPLOY.md).

    Raises:
        WorldError: there is no Java >= 17; the message says how to get one.
    """
    ensure_worker_python(quick_python() if local else "")
    return ensure_java()
