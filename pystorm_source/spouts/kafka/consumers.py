"""The task's side of Kafka: ranges of offsets out of consumers that stay warm between them.

A consumer is assigned one partition at a time and fetches ahead in a thread of librdkafka's, so that a range that
continues the last one finds its records in memory. Records fetched beyond the end of a range are kept for that range or
thrown away, never emitted.

The end of a range need not be a record: compaction leaves gaps, and transactions leave markers and aborted records that
take offsets. So a range ends with its last offset, with a record beyond it, or when the partition's end
(``enable.partition.eof``) is reached at or after it.
"""

import logging
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any

from cython_core.arrow.row_batch import all_none
from pystorm_source.clock import Clock
from pystorm_source.errors import DataLossError, WorldError
from pystorm_source.spouts.kafka.client_events import ClientEvents
from pystorm_source.spouts.kafka.client_log import ClientLog
from pystorm_source.spouts.kafka.options import KafkaOptions
from pystorm_source.spouts.kafka.properties import made_client
from pystorm_source.spouts.kafka.topics import PASSING, Partition

# Consumers that a task keeps. Too small: partitions that alternate fetch the same records again. Too large:
# connections, threads and 4 MB of fetched records each.
MOST_CONSUMERS = 4
# Measured with 100-byte records: the fastest from 500 to 10,000, because records stay in the processor's cache.
CHUNK = 500
# Wait for records in a call. Too small: calls that find nothing. Too large: acks and ticks of the task wait that long.
WAIT_SECONDS = 0.05

# How far librdkafka fetches ahead: 4 MB or 40,000 records are as fast as more. Records fetched ahead are lost when a
# range continues in another process: with only 4 MB as a limit, records of 20 bytes were fetched twice. Every 10 ms it
# checks for room: its default pause of a second made consuming five times slower, and without a pause its thread takes
# a core for an idle consumer with a full queue. Control records at the end of a range are noticed with the next empty
# fetch, within 50 ms.
DEFAULTS: dict[str, Any] = {
    "isolation.level": "read_uncommitted",
    "queued.min.messages": 40_000,
    "queued.max.messages.kbytes": 4096,
    "fetch.queue.backoff.ms": 10,
    "fetch.wait.max.ms": 50,
    "reconnect.backoff.max.ms": 1000,
}
OWN: dict[str, Any] = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,
    "auto.offset.reset": "error",
}


Chunk = tuple[Sequence[int], Sequence[Any]]
"""Offsets and their messages."""


class KafkaConsumers:
    """The consumers of one spout task, by the partition that each was last assigned."""

    def __init__(self, options: KafkaOptions, clock: Clock, logger: logging.Logger):
        self._options = options
        self._clock = clock
        self._log = logger
        self._client_log = ClientLog(logger, clock)  # one for all, because they connect to the same brokers
        self._kept: OrderedDict[tuple[str, int], PartitionConsumer] = OrderedDict()

    def take(self, partition: Partition) -> "PartitionConsumer":
        """Returns the partition's consumer, or a new one; at ``MOST_CONSUMERS``, the one unused for longest."""
        place = (partition.topic, partition.number)
        consumer = self._kept.pop(place, None)
        if consumer is None and len(self._kept) >= MOST_CONSUMERS:
            _, consumer = self._kept.popitem(last=False)
        if consumer is None:
            consumer = PartitionConsumer(self._options, self._clock, self._log, self._client_log)
        self._kept[place] = consumer
        return consumer

    def close(self) -> None:
        while self._kept:
            self._kept.popitem()[1].close()


class PartitionConsumer:
    """A consumer of one partition at a time. Raises OptionError for properties that librdkafka refuses."""

    def __init__(self, options: KafkaOptions, clock: Clock, logger: logging.Logger, client_log: ClientLog):
        self._options = options
        self._clock = clock
        self._log = logger
        self._timeout_seconds = options.poll_timeout_millis / 1000
        self._events = ClientEvents(options.properties, logger)
        properties = {"group.id": f"{options.group_id_prefix}-task", **DEFAULTS, **options.properties, **OWN}
        self._consumer = made_client("Consumer", properties, logger=client_log, **self._events.callbacks)
        self._place: tuple[str, int] | None = None
        self._position = -1
        self._left: Sequence[Any] = ()

    def chunks(self, partition: Partition, start: int, end: int) -> Iterator[Chunk]:
        """Offsets and messages of [start, end), in order, some hundred at a time.

        Raises DataLossError if offsets are gone and options do not allow to go on, WorldError if nothing comes
        for ``kafkaConsumer.pollTimeoutMs``, or if brokers refuse the client.
        """
        self._go_to(partition, start)
        deadline = self._clock.monotonic() + self._timeout_seconds
        while self._position < end:
            messages = self._left or self._consumer.consume(min(CHUNK, end - self._position), WAIT_SECONDS)
            self._left = ()
            if messages and not all_none(messages, type(messages[0]).error):
                messages = self._without_events(partition, end, messages)
            offsets = _offsets_of(messages)
            if not offsets:
                self._events.check()
                if self._position < end and self._clock.monotonic() > deadline:
                    raise self._silent(partition, end)
                continue
            if offsets[-1] >= end:
                cut = bisect_left(offsets, end)
                self._left = messages[cut:]
                offsets, messages = offsets[:cut], messages[:cut]
                self._position = end
            else:
                self._position = max(self._position, offsets[-1] + 1)
            if offsets:
                yield offsets, messages
                offsets = messages = ()  # order: given up before the next ones are made, so that all stay in the cache
                deadline = self._clock.monotonic() + self._timeout_seconds

    def close(self) -> None:
        self._consumer.close()

    def _go_to(self, partition: Partition, start: int) -> None:
        """Assigns the partition, unless the consumer is there already."""
        from confluent_kafka import TopicPartition

        place = (partition.topic, partition.number)
        if place == self._place and self._position == start:
            return
        self._left = ()
        self._events.last_error = ""
        # An assignment, although a seek would do: it also drops records that are still on their way.
        self._consumer.assign([TopicPartition(*place, start)])
        self._place, self._position = place, start

    def _without_events(self, partition: Partition, end: int, messages: Sequence[Any]) -> list[Any]:
        """The records among these; events move the position or raise."""
        from confluent_kafka import KafkaError

        gone = (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION)
        records = [message for message in messages if message.error() is None]
        for message in messages:
            error = message.error()
            if error is None:
                self._position = max(self._position, message.offset() + 1)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._position = max(self._position, message.offset())
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                self._pass_over_lost(partition, end)
            elif error.code() in gone:
                self._lost(f"{partition} is gone, its offsets [{self._position}, {end}) were still to be read")
                self._position, self._place = end, None
            elif PASSING.fullmatch(error.name()):
                self._events.last_error = f"{error.name()}: {error.str()}"  # librdkafka goes on by itself
            else:
                raise WorldError(
                    f"{partition} cannot be read at offset {self._position} of [.., {end}): {error.name()}: "
                    f"{error.str()}: see the brokers' logs, and check that their access lists let the client read. "
                    f"Given: kafka.bootstrap.servers={self._servers!r}",
                    code="PYSTORM_KAFKA_UNREACHABLE",
                )
        return records

    def _pass_over_lost(self, partition: Partition, end: int) -> None:
        """The offset is out of the partition's range: continues at the range's begin, or ends the range. A broker that
        has just become the leader may report this for an existing offset: it is asked again."""
        from confluent_kafka import KafkaException, TopicPartition

        place = TopicPartition(partition.topic, partition.number)
        try:
            earliest, latest = self._consumer.get_watermark_offsets(place, timeout=self._timeout_seconds)
        except KafkaException as error:
            raise self._silent(partition, end) from error
        if earliest <= self._position < latest:
            self._place = None
            self._go_to(partition, self._position)
            return
        upto = min(earliest, end) if earliest > self._position else end
        self._lost(
            f"offsets [{self._position}, {upto}) of {partition} are gone: Kafka holds [{earliest}, {latest}) now"
        )
        if upto < end:
            self._go_to(partition, upto)
        else:
            self._position, self._place = end, None

    def _lost(self, what: str) -> None:
        if self._options.fail_on_data_loss:
            raise DataLossError(
                f"{what}. Some data may be lost: let the query go on without it with option failOnDataLoss=false. "
                f"Given: failOnDataLoss={True!r}",
                code="PYSTORM_DATA_LOST",
            )
        self._log.warning("%s; skipped, as failOnDataLoss is false", what)

    def _silent(self, partition: Partition, end: int) -> WorldError:
        said = f"; the client says: {self._events.last_error}" if self._events.last_error else ""
        return WorldError(
            f"{partition} gave nothing for {self._options.poll_timeout_millis} ms (kafkaConsumer.pollTimeoutMs) at "
            f"offset {self._position}, to be read up to {end}{said}: see that its leader runs and can be reached from "
            f"the executors. Given: kafka.bootstrap.servers={self._servers!r}",
            code="PYSTORM_KAFKA_UNREACHABLE",
        )

    @property
    def _servers(self) -> str:
        return self._options.properties["bootstrap.servers"]


def _offsets_of(messages: Sequence[Any]) -> Sequence[int]:
    """Returns the offsets of records in order; if they are consecutive, as usual, without a look at each record."""
    if not messages:
        return ()
    first, last = messages[0].offset(), messages[-1].offset()
    if last - first + 1 == len(messages):
        return range(first, last + 1)
    return [message.offset() for message in messages]
