"""The Kafka broker of the notebook that needs one, when the tests run the notebooks (which have no fixtures)."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest

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
