"""Writes records into a topic of a test, and reads it as Spark would."""

import itertools
import logging
import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Producer

from pystorm_source.spouts import KafkaBatchSpout, KafkaSpout
from tests.spouts.drive import Driven, Query

SPOUTS = [KafkaSpout, KafkaBatchSpout]
QUIET = {"log_level": 0}
_names = (f"topic{number}" for number in itertools.count())


class Topic:
    """A topic of its own on this cluster, or the one called ``name``."""

    def __init__(self, cluster: Any, partitions: int = 1, name: str = "", **config: Any):
        self.cluster = cluster
        self.name = name or cluster.create(next(_names), partitions, **config)

    def write(self, values: Iterable[Any], partition: int = 0, **more: Any) -> None:
        """A record for each value, str or bytes or None; returns when all are there. ``key`` may be a function."""
        key = more.pop("key", None)
        # One for each: it knows partitions and topics that were made since.
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap, "linger.ms": 1, **QUIET})
        for value in values:
            own = {"key": key(value)} if callable(key) else {} if key is None else {"key": key}
            producer.produce(self.name, value, partition=partition, **own, **more)
        assert producer.flush(30) == 0

    def transaction(self, name: str) -> Producer:
        """A producer that has begun a transaction."""
        settings = {"bootstrap.servers": self.cluster.bootstrap, "transactional.id": f"{self.name}-{name}", **QUIET}
        producer = Producer(settings)
        producer.init_transactions(30)
        producer.begin_transaction()
        return producer

    def write_in(self, producer: Producer, values: Iterable[str], partition: int = 0) -> None:
        for value in values:
            producer.produce(self.name, value, partition=partition)
        assert producer.flush(30) == 0

    def spout(self, cls: Any = KafkaSpout, fields: list[str] | None = None, **options: Any) -> Driven:
        """The spout that reads it; ``options`` with ``_`` for ``.``."""
        config = {key.replace("_", "."): value for key, value in options.items()}
        config = {"subscribe": self.name, **config} if not {"assign", "subscribePattern"} & config.keys() else config
        return Driven(
            cls.spec(servers=self.cluster.bootstrap, fields=fields or ["value string"], config=config),
        )

    def query(self, **options: Any) -> Query:
        return Query(self.spout(**options))


def values_of(rows: Iterable[tuple[int | None, tuple[Any, ...]]]) -> list[Any]:
    """The first value of each row that ``Driven.read`` gave."""
    return [values[0] for _, values in rows]


def numbers(start: int, end: int) -> list[str]:
    return [str(number) for number in range(start, end)]


def until(look: Callable[[], Any], seconds: float = 30.0) -> Any:
    """What ``look`` gives once it is true."""
    end = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < end, f"still {seen!r} after {seconds} s"
        time.sleep(0.02)
    return seen


class Heard(logging.Handler):
    """The messages of a logger."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())
