"""What tests that run the notebooks give their kernels: JVMs that start quickly, and a Kafka broker if one is needed."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from testbed.spark_classes import submit_options

# Kernels inherit both.
os.environ.setdefault("SPARK_SUBMIT_OPTS", submit_options())
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_open = ExitStack()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Starts it only if that notebook is among those that run, unless NOTEBOOK_KAFKA names another one."""
    needed = any("kafka" in item.nodeid for item in session.items) and not session.config.option.collectonly
    if needed and "NOTEBOOK_KAFKA" not in os.environ:
        from testbed.kafka_broker import kafka_cluster

        folder = _open.enter_context(tempfile.TemporaryDirectory(prefix="notebook-kafka-", ignore_cleanup_errors=True))
        cluster = _open.enter_context(kafka_cluster(Path(folder)))
        os.environ["NOTEBOOK_KAFKA"] = cluster.bootstrap  # kernels inherit it
        _open.callback(os.environ.pop, "NOTEBOOK_KAFKA")


def pytest_sessionfinish() -> None:
    """Ends it."""
    _open.close()
