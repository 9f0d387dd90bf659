"""Kafka from the driver: topics, partitions and offsets, with one request to each broker.

A partition is called ``orders-0``, as in Kafka's own TopicPartition. If a topic is deleted and created again, Kafka
gives it another id. Its partitions are then called ``orders-0@2``: the old ones have vanished, and the new ones begin
at their earliest offset. The state of the snapshot remembers the id of a topic: ``{"orders": "id"}``, or
``{"orders": "id 2"}`` for the second topic of that name.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import wait
from contextlib import suppress
from typing import Any, NamedTuple

from pystorm_source.api.partitioned_spout import Snapshot
from pystorm_source.clock import Clock
from pystorm_source.errors import OptionError, WorldError
from pystorm_source.spouts.kafka.client_events import ClientEvents
from pystorm_source.spouts.kafka.client_log import ClientLog
from pystorm_source.spouts.kafka.options import KafkaOptions, Times
from pystorm_source.spouts.kafka.properties import made_client

# The errors of a request that may be answered a moment later, by name: brokers that are down, leaders that move.
PASSING = re.compile(
    r"_ALL_BROKERS_DOWN|_TRANSPORT|_NOENT|_TIMED_OUT|_TIMED_OUT_QUEUE|_RESOLVE|_DESTROY|_WAIT_CACHE|_LEADER_NOT_AVAILABLE|"
    r"LEADER_NOT_AVAILABLE|NOT_LEADER_FOR_PARTITION|NOT_LEADER_OR_FOLLOWER|REQUEST_TIMED_OUT|NETWORK_EXCEPTION|"
    r"BROKER_NOT_AVAILABLE|REPLICA_NOT_AVAILABLE|KAFKA_STORAGE_ERROR|FENCED_LEADER_EPOCH|UNKNOWN_LEADER_EPOCH|"
    r"OFFSET_NOT_AVAILABLE|COORDINATOR_\w+|NOT_COORDINATOR\w*|UNKNOWN_TOPIC_OR_PART|UNKNOWN_TOPIC_ID|UNKNOWN"
)

WAIT_SECONDS = 0.05
NOTHING_SO_LATE = -1


class Partition(NamedTuple):
    """A partition of the ``incarnation``th topic of that name."""

    topic: str
    number: int
    incarnation: int = 1

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}" + (f"@{self.incarnation}" if self.incarnation > 1 else "")

    @classmethod
    def parse(cls, name: str) -> "Partition":
        name, _, incarnation = name.partition("@")  # no topic has this character
        topic, _, number = name.rpartition("-")
        return cls(topic, int(number), int(incarnation or 1))


class _Topic(NamedTuple):
    id: str
    partitions: tuple[int, ...]
    internal: bool


class KafkaTopics:
    """Asks the brokers. Raises WorldError if they do not answer or lack a topic, OptionError for refused properties,
    or a start that is later than all records."""

    def __init__(self, options: KafkaOptions, clock: Clock, logger: logging.Logger):
        self._options = options
        self._clock = clock
        self._log = logger
        self._servers = options.properties["bootstrap.servers"]
        self._events = ClientEvents(options.properties, logger)
        properties, log = _of_admin(options.properties), ClientLog(logger, clock)
        self._admin = made_client("AdminClient", properties, logger=log, **self._events.callbacks)
        self._group = options.properties.get("group.id")
        self._timeout_seconds = options.request_seconds
        self._committing: Any = None

    def snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        """Heads of all partitions to read. ``known`` and ``state`` as in ``PartitionedSpout.snapshot``."""
        return self._retried(lambda: self._snapshot(known, state))

    def _snapshot(self, known: Mapping[str, int], state: Mapping[str, int | str]) -> Snapshot:
        self._admin.poll(0)  # serves librdkafka's log
        topics = self._topics(known)
        notes = dict(state)
        partitions = []
        for name, topic in sorted(topics.items()):
            note, incarnation = _remembered(state.get(name), topic.id)
            notes[name] = note
            partitions += [Partition(name, number, incarnation) for number in topic.partitions]
        earliest, latest = self._offsets(partitions, "earliest"), self._offsets(partitions, "latest")
        begins = {} if known else self._begins(partitions, latest)
        ends = latest | self._at_times(self._options.ending_times, partitions)
        heads = {}
        for partition, low in earliest.items():
            begin = begins.get(partition, low)
            end = latest[partition] if ends[partition] < 0 else min(ends[partition], latest[partition])
            heads[str(partition)] = (begin, max(begin, end))
        return Snapshot(heads, notes)

    def commit(self, offsets: Mapping[str, int]) -> None:
        """Commits the offsets of the group, if there is one, for dashboards of its lag. Non-blocking; failures are
        logged."""
        if self._group is None or (self._committing is not None and not self._committing.done()):
            return  # the next commit has newer offsets
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        places = [(Partition.parse(name), offset) for name, offset in offsets.items()]
        wanted = [TopicPartition(each.topic, each.number, offset) for each, offset in places]
        try:
            request = ConsumerGroupTopicPartitions(self._group, wanted)
            future = self._admin.alter_consumer_group_offsets([request])[self._group]
        except Exception as error:
            self._log.warning("offsets of group %r are not committed: %s", self._group, error)
            return
        self._committing = future
        future.add_done_callback(self._committed)

    def _committed(self, future: Any) -> None:
        failed = future.exception()
        errors = [failed] if failed else [each.error for each in future.result().topic_partitions if each.error]
        if errors:
            self._log.warning("offsets of group %r are not committed: %s", self._group, errors[0])

    def _topics(self, known: Mapping[str, int]) -> dict[str, _Topic]:
        """The topics to read and, of ``assign``, the partitions."""
        assigned = self._options.assigned
        wanted = self._options.topics or list(assigned)
        if self._options.subscribe_pattern:
            # Order: the client's events are served while this answer is awaited, but not during list_topics.
            self._answer(self._admin.describe_cluster(request_timeout=self._timeout_seconds / 4))
            there = self._admin.list_topics(timeout=self._timeout_seconds).topics
            wanted = [name for name in there if re.fullmatch(self._options.subscribe_pattern.strip(), name)]
        found = self._described(wanted)
        if self._options.subscribe_pattern:
            return {name: topic for name, topic in found.items() if topic is not None and not topic.internal}
        present = {}
        for name, topic in found.items():
            if topic is not None:
                numbers = [number for number in assigned.get(name, topic.partitions) if number in topic.partitions]
                present[name] = topic._replace(partitions=tuple(numbers))
        self._check_there(assigned or {name: [] for name in wanted}, present, known)
        return present

    def _check_there(
        self, wanted: Mapping[str, list[int]], present: Mapping[str, _Topic], known: Mapping[str, int]
    ) -> None:
        """A partition that was never read cannot have been lost: it does not exist yet, or its name is wrong."""
        read = {Partition.parse(name)[:2] for name in known}
        for topic, numbers in wanted.items():
            have = present[topic].partitions if topic in present else ()
            missing = [number for number in numbers if number not in have]
            if topic in present and not missing:
                continue
            if known and not self._options.fail_on_data_loss:
                continue
            if (missing and {(topic, number) for number in missing} & read) or any(topic == name for name, _ in read):
                continue
            what = f"partitions {missing} of topic {topic!r}" if topic in present else f"topic {topic!r}"
            raise WorldError(
                f"Kafka does not have {what}: create it, or take it out of the option subscribe or assign. Given: "
                f"{topic!r} at {self._servers}",
                code="PYSTORM_KAFKA_TOPIC_NOT_FOUND",
            )

    def _described(self, names: Iterable[str]) -> dict[str, _Topic | None]:
        """Topic → its description; None if it does not exist."""
        from confluent_kafka import KafkaError, KafkaException, TopicCollection

        names = list(names)
        if not names:
            return {}
        found: dict[str, _Topic | None] = {}
        answers = self._admin.describe_topics(TopicCollection(names), request_timeout=self._timeout_seconds / 4)
        for name, future in answers.items():
            try:
                topic = self._answer(future)
            except KafkaException as error:
                if error.args[0].code() not in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC):
                    raise
                found[name] = None
                continue
            numbers = tuple(sorted(partition.id for partition in topic.partitions))
            found[name] = _Topic(str(topic.topic_id), numbers, topic.is_internal)
        return found

    def _offsets(self, partitions: list[Partition], where: str | Mapping[Partition, int]) -> dict[Partition, int]:
        """Offset of each, at ``earliest``, ``latest`` or the times given in milliseconds; -1 if nothing is that
        late."""
        from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
        from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

        if not partitions:
            return {}
        spec = {"earliest": OffsetSpec.earliest, "latest": OffsetSpec.latest}
        request = {
            TopicPartition(each.topic, each.number): spec[where]()
            if isinstance(where, str)
            else OffsetSpec.for_timestamp(where[each])
            for each in partitions
        }
        committed = self._options.properties.get("isolation.level") == "read_committed"
        futures = self._admin.list_offsets(
            request,
            isolation_level=IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED,
            request_timeout=self._timeout_seconds,
        )
        answers = {(place.topic, place.partition): future for place, future in futures.items()}
        found = {each: self._answer(answers[each.topic, each.number]).offset for each in partitions}
        # Workaround: if a connection is lost at this moment, librdkafka may give neither an error nor an offset.
        least = 0 if isinstance(where, str) else NOTHING_SO_LATE
        for each, offset in found.items():
            if offset < least:
                raise KafkaException(KafkaError(KafkaError._TRANSPORT, f"no offset of {each}"))
        return found

    def _answer(self, future: Any) -> Any:
        """The result of a request. Raises WorldError as soon as brokers refuse the client."""
        while not future.done():
            wait([future], timeout=WAIT_SECONDS)
            self._admin.poll(0)
            self._events.check()
        return future.result()

    def _at_times(self, times: Times | None, partitions: list[Partition]) -> dict[Partition, int]:
        """The offsets at these times, of partitions that have one; -1 if nothing is that late."""
        found = {} if times is None else {each: times.of(str(each)) for each in partitions}
        wanted = {each: time for each, time in found.items() if time is not None}
        return self._offsets(list(wanted), wanted)

    def _begins(self, partitions: list[Partition], latest: Mapping[Partition, int]) -> dict[Partition, int]:
        """The start of a new query that begins at a time."""
        times = self._options.starting_times
        begins = self._at_times(times, partitions)
        late = sorted(str(each) for each, offset in begins.items() if offset < 0)
        if times is not None and late and self._options.starting_strategy == "error":
            raise OptionError(
                "no record is as late as startingTimestamp or startingOffsetsByTimestamp wants in "
                f"{', '.join(late[:20])}: name an earlier time, or set startingOffsetsByTimestampStrategy=latest. "
                f"Given: {times.named if times.everywhere is None else times.everywhere!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        return {each: latest[each] if offset < 0 else offset for each, offset in begins.items()}

    def _retried(self, ask: Callable[[], Snapshot]) -> Snapshot:
        from confluent_kafka import KafkaException

        left = self._options.fetch_retries
        while True:
            try:
                return ask()
            except KafkaException as error:
                reason = error.args[0]
                self._admin.poll(0)
                self._events.check()
                if left <= 0 or not PASSING.fullmatch(reason.name()):
                    said = f"; the client says: {self._events.last_error}" if self._events.last_error else ""
                    raise WorldError(
                        f"Kafka does not report its topics and offsets ({reason.name()}: {reason.str()}), asked "
                        f"{self._options.fetch_retries - left + 1} times (fetchOffset.numRetries, "
                        f"fetchOffset.retryIntervalMs){said}: see that its brokers run, that the driver can reach "
                        "them, and that they speak kafka.security.protocol. Given: "
                        f"kafka.bootstrap.servers={self._servers!r}",
                        code="PYSTORM_KAFKA_UNREACHABLE",
                    ) from error
                left -= 1
                self._log.warning("Kafka at %s does not answer (%s), asking again", self._servers, reason.name())
                self._clock.sleep(self._options.fetch_retry_millis / 1000)
                self._learn_brokers()

    def _learn_brokers(self) -> None:
        """Workaround: librdkafka asks one broker for topics, waits for it though it has died, and learns of another one
        every five minutes, or when all are asked for."""
        from confluent_kafka import KafkaException

        with suppress(KafkaException):
            self._admin.list_topics(timeout=self._timeout_seconds)


def _of_admin(properties: Mapping[str, str]) -> dict[str, str]:
    """Without what only consumers know: librdkafka would warn of it."""
    consumers = re.compile(r"group\.|fetch\.|max\.poll\.|queued\.|isolation\.level|check\.crcs|session\.|heartbeat\.")
    return {key: value for key, value in properties.items() if not consumers.match(key)}


def _remembered(note: int | str | None, topic_id: str) -> tuple[str, int]:
    """Returns the new note of a topic with this id, and its number among the topics of its name."""
    last, _, number = str(note or topic_id).partition(" ")
    incarnation = int(number or 1) + (0 if last == topic_id else 1)
    return (topic_id if incarnation == 1 else f"{topic_id} {incarnation}"), incarnation
