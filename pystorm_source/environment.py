"""The environment that Spark is started in: its Java, and the Python that its processes run."""

from pystorm_source.cli.java import Java, ensure_java
from pystorm_source.source.worker_python import ensure_worker_python


def prepare_spark() -> Java:
    """Prepares this process for Spark: a suitable Java, and workers that run this Python.

    Raises:
        WorldError: there is no Java >= 17; the message says how to get one.
    """
    ensure_worker_python()
    return ensure_java()
