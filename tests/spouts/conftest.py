"""One Kafka for all tests of this room."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.peers import PeerMissing


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A broker. Where it cannot be had the test fails with CI=true, else it is skipped."""
    pytest.importorskip("confluent_kafka") if os.environ.get("CI") != "true" else None
    from tests.kafka_broker import kafka_cluster

    try:
        with kafka_cluster(tmp_path_factory.mktemp("kafka")) as cluster:
            yield cluster
    except PeerMissing as missing:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{missing}: install Maven (.ci/run does it)")
        pytest.skip(str(missing))
