"""Options of the Kafka spouts, by the names of Spark's own Kafka source."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.formats.options import DecodingOptions
from pystorm_source.options import parse, shown
from pystorm_source.options.names import distinct
from pystorm_source.spouts.kafka.oauth import check_oauth
from pystorm_source.spouts.kafka.properties import client_properties
from pystorm_source.types.json_values import json_of


class KafkaOptions(DecodingOptions, frozen=True, kw_only=True):
    """Options of the Kafka spouts: set by ``KafkaSpout.spec``, in a config, or as options of the reader."""

    further = (
        "key.avro.reader.schema",
        "value.avro.reader.schema",
        "key.protobuf.descriptor.file",
        "value.protobuf.descriptor.file",
        "key.protobuf.message",
        "value.protobuf.message",
        "startingTimestamp",
        "startingOffsetsByTimestamp",
        "startingOffsetsByTimestampStrategy",
        "endingTimestamp",
        "endingOffsetsByTimestamp",
        "groupIdPrefix",
        "kafkaConsumer.pollTimeoutMs",
        "fetchOffset.numRetries",
        "fetchOffset.retryIntervalMs",
    )
    usual: ClassVar[tuple[str, ...]] = ("kafka.bootstrap.servers", "kafka.group.id", "kafka.isolation.level")

    client: Annotated[
        dict[str, Any] | None,
        Meta(
            description="Client properties by Java's or librdkafka's names: kafka.bootstrap.servers (needed), "
            "kafka.group.id, kafka.sasl.*, kafka.ssl.* and more. kafka.oauth_cb: package.module:function "
            "that returns tokens."
        ),
    ] = msgspec.field(name="kafka.*", default=None)
    subscribe: Annotated[str, Meta(description="Comma-separated topics.")] = ""
    subscribe_pattern: Annotated[
        str,
        Meta(description="Regular expression that matches entire names of topics, present and later ones."),
    ] = msgspec.field(name="subscribePattern", default="")
    assign: Annotated[str, Meta(description='Partitions as JSON: {"orders": [0, 1]}.')] = ""
    starting_timestamp: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Milliseconds since 1970: a new query starts at each partition's first record from then on. "
            "Leave startingOffsets unset."
        ),
    ] = msgspec.field(name="startingTimestamp", default=None)
    starting_offsets_by_timestamp: Annotated[
        str,
        Meta(description='startingTimestamp by partition: {"orders": {"0": 1700000000000}}. Others start at earliest.'),
    ] = msgspec.field(name="startingOffsetsByTimestamp", default="")
    starting_strategy: Annotated[
        Literal["error", "latest"],
        Meta(
            description="For partitions without such a record. error: the query fails. latest: they start at their end."
        ),
    ] = msgspec.field(name="startingOffsetsByTimestampStrategy", default="error")
    ending_timestamp: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="Milliseconds since 1970: a batch read ends before each partition's first record from then on."
        ),
    ] = msgspec.field(name="endingTimestamp", default=None)
    ending_offsets_by_timestamp: Annotated[
        str,
        Meta(description='endingTimestamp by partition: {"orders": {"0": 1700000000000}}. Others end at latest.'),
    ] = msgspec.field(name="endingOffsetsByTimestamp", default="")
    include_headers: Annotated[
        bool,
        Meta(description="Whether to read headers. true needs KafkaSpout.spec(include_headers=True)."),
    ] = msgspec.field(name="includeHeaders", default=False)
    fail_on_data_loss: Annotated[
        bool,
        Meta(description="true: lost data fails the query. false: the loss is logged, and the query continues."),
    ] = msgspec.field(name="failOnDataLoss", default=True)
    group_id_prefix: Annotated[
        str, Meta(description="Prefix of the tasks' consumer group ids if kafka.group.id is unset.")
    ] = msgspec.field(name="groupIdPrefix", default="pystorm-kafka-source")
    poll_timeout_millis: Annotated[
        int, Meta(ge=1, description="Milliseconds that a task waits for the next record.")
    ] = msgspec.field(name="kafkaConsumer.pollTimeoutMs", default=120_000)
    fetch_retries: Annotated[
        int, Meta(ge=0, le=10_000, description="Retries of the driver's requests for offsets.")
    ] = msgspec.field(name="fetchOffset.numRetries", default=3)
    fetch_retry_millis: Annotated[
        int, Meta(ge=0, le=3_600_000, description="Milliseconds between retries of requests for offsets.")
    ] = msgspec.field(name="fetchOffset.retryIntervalMs", default=1000)

    for_batches = frozenset({"endingTimestamp", "endingOffsetsByTimestamp"})
    takes_json = frozenset(
        (
            "assign",
            "startingOffsetsByTimestamp",
            "endingOffsetsByTimestamp",
            "key.avro.reader.schema",
            "value.avro.reader.schema",
        )
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        given = {
            "subscribe": self.subscribe,
            "subscribePattern": self.subscribe_pattern,
            "assign": self.assign,
        }
        chosen = [key for key, value in given.items() if value.strip()]
        if len(chosen) != 1:
            raise OptionError(
                "exactly one of the options subscribe (topics), subscribePattern (a regular expression) and assign "
                f"(partitions as JSON) is needed to read from Kafka. Given: {chosen or 'none of them'!r}",
                code="PYSTORM_MISSING_OPTION",
            )
        if not self.topics and not self.subscribe_pattern and not self.assigned:
            raise OptionError(
                f"option {chosen[0]!r} names nothing to read. Given: {given[chosen[0]]!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        try:
            re.compile(self.subscribe_pattern)
        except re.error as error:
            raise OptionError(
                f"option 'subscribePattern' is no regular expression: {error}. Given: {self.subscribe_pattern!r}",
                code="PYSTORM_INVALID_OPTION",
            ) from None
        starting, ending = self.starting_times, self.ending_times  # checked here, read when a query begins
        if (
            starting
            and ending
            and starting.everywhere
            and ending.everywhere
            and starting.everywhere > ending.everywhere
        ):
            raise OptionError(
                f"option 'endingTimestamp' lies before startingTimestamp, {starting.everywhere}: nothing would be "
                f"read. Given: {ending.everywhere!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        check_oauth(self.properties)
        self.request_seconds  # noqa: B018

    def __repr__(self) -> str:
        client = ", ".join(f"kafka.{key}={shown(key, value)}" for key, value in sorted((self.client or {}).items()))
        return f"KafkaOptions({self.subscribe or self.subscribe_pattern or self.assign!r}, {client})"

    @classmethod
    def of(cls, conf: Mapping[str, Any]) -> "KafkaOptions":
        """Raises OptionError, with key, value and remedy."""
        return parse(cls, conf)

    @property
    def properties(self) -> dict[str, str]:
        """The properties of librdkafka."""
        return client_properties(self.client or {})

    @property
    def request_seconds(self) -> float:
        """How long the driver waits for one answer: ``default.api.timeout.ms``, 20 seconds. Raises OptionError."""
        given = str((self.client or {}).get("default.api.timeout.ms", "20000"))
        if not given.isdecimal() or int(given) < 1:
            raise OptionError(
                f"option 'kafka.default.api.timeout.ms' is a number of at least 1. Given: {given!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        return int(given) / 1000

    @property
    def topics(self) -> list[str]:
        """Topics of ``subscribe``."""
        return distinct(self.subscribe)

    @property
    def assigned(self) -> dict[str, list[int]]:
        """Topic → partitions of ``assign``. Raises OptionError."""
        if not self.assign.strip():
            return {}
        try:
            return msgspec.json.decode(self.assign, type=dict[str, list[Annotated[int, Meta(ge=0)]]])
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise OptionError(
                f'option "assign" is JSON such as {{"orders": [0, 1]}}: {error}. Given: {self.assign!r}',
                code="PYSTORM_INVALID_OPTION",
            ) from None

    @property
    def starting_times(self) -> "Times | None":
        """The start of a query by time; None: by offset. Raises OptionError."""
        key = "startingOffsetsByTimestamp"
        return _times(self.starting_timestamp, key, self.starting_offsets_by_timestamp)

    @property
    def ending_times(self) -> "Times | None":
        """The end of a batch read by time; None: by offset. Raises OptionError."""
        return _times(self.ending_timestamp, "endingOffsetsByTimestamp", self.ending_offsets_by_timestamp)


class Times(NamedTuple):
    """Milliseconds since 1970: in every partition, or, if that is None, in some."""

    everywhere: int | None
    named: dict[str, int]

    def of(self, partition: str) -> int | None:
        return self.named.get(partition) if self.everywhere is None else self.everywhere


def _times(everywhere: int | None, key: str, text: str) -> Times | None:
    if everywhere is not None:
        return Times(everywhere, {})
    if not text.strip():
        return None
    try:
        given = json_of(text)
    except ValueError:
        given = None
    return Times(None, named_by_partition(key, given, 0, text))


def named_by_partition(key: str, given: Any, least: int, text: Any = None) -> dict[str, int]:
    """Spark's ``{"orders": {"0": 23}}`` as ``{"orders-0": 23}``. Raises OptionError, also for numbers below
    ``least``."""
    try:
        topics = msgspec.convert(given, type=dict[str, dict[Annotated[str, Meta(pattern="^[0-9]+$")], int]])
    except msgspec.ValidationError:
        topics = {"": {"0": least - 1}}
    named = {f"{topic}-{int(number)}": place for topic, places in topics.items() for number, place in places.items()}
    if any(place < least for place in named.values()):
        raise OptionError(
            f'option {key!r} is JSON such as {{"orders": {{"0": 23, "1": 42}}}}, an int of at least {least} for each '
            f"partition. Given: {given if text is None else text!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return named
