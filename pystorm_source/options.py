"""The option table: every key with type, default, bounds and meaning, and the one way to read it.

``conf/defaults.yaml`` and ``docs/OPTIONS.md`` are printed from here (a test compares them). Engine keys keep Storm's
names; admission keys keep the names of Spark's Kafka source. Parsed once, to frozen objects.
"""

import difflib
import functools
import ipaddress
import logging
import re
import typing
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from pystorm_source.errors import LONGEST_GIVEN, OptionError, cut, given
from pystorm_source.redaction import redacted

LINT_CODES = (
    "batch-without-ticks",
    "callbacks-without-ids",
    "cycle",
    "exception-ends-task",
    "grouping-per-task",
    "key-without-effect",
    "spouts-apart",
    "unknown-key",
)
LOG_LEVELS = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}


_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?")
PROGRESSIVE = "org.apache.storm.policy.WaitStrategyProgressive"
_STORMS_WAITS = "WaitStrategyProgressive, WaitStrategyPark (with or without org.apache.storm.policy.)"
_OWN_WAIT = "or a class of your own, as module:Class, with prepare(conf, situation) and idle(idle_counter)."
_ParkMicros = Annotated[
    int, Meta(ge=0, le=60_000_000, description="WaitStrategyPark: microseconds of one wait; 0: no wait.")
]
_Level1Count = Annotated[
    int,
    Meta(ge=0, le=1 << 31, description="WaitStrategyProgressive: number of waits that end at once, before level 2."),
]
_Level2Count = Annotated[
    int,
    Meta(
        ge=0,
        le=1 << 31,
        description="WaitStrategyProgressive: number of shortest-possible waits before level 3. Ignored for bolts "
        "and back-pressure: a tuple or free room wakes them.",
    ),
]
_Level3Millis = Annotated[
    int, Meta(ge=0, le=60_000, description="WaitStrategyProgressive: milliseconds of each wait of level 3.")
]


class WaitOptions(NamedTuple):
    """How one situation waits: the five keys ``topology.SITUATION.wait.*``."""

    strategy: str
    park_microsec: int
    level1_count: int
    level2_count: int
    level3_sleep_millis: int


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of option tables. A spout declares its own by subclassing it and naming it in ``Spout.Options``.

    A field whose key ends with ``.*`` takes a whole family of keys, as a dict without the common prefix.
    """

    for_batches: ClassVar[frozenset[str]] = frozenset()
    """The keys that end a batch read: a stream refuses them."""

    def __repr__(self) -> str:
        values = (f"{each.name}={shown(key, getattr(self, each.name))}" for key, each in fields_of(type(self)).items())
        return f"{type(self).__qualname__}({', '.join(values)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [(each.name, redacted(key, getattr(self, each.name))) for key, each in fields_of(type(self)).items()]

    @classmethod
    def defaults_beside(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """Field → default, of fields that are not ``given`` and whose default depends on those that are."""
        return {}


class EngineOptions(Options, frozen=True, kw_only=True):
    """How a topology runs inside one Spark task; set by option or in ``Topology.config``."""

    scheduler: Annotated[
        Literal["inline", "threads"],
        Meta(
            description="inline: one thread takes turns for all executors. threads: a thread per executor, for bolts "
            "that release the interpreter's lock (I/O, numpy, Arrow)."
        ),
    ] = msgspec.field(name="topology.scheduler", default="inline")
    receive_buffer_size: Annotated[
        int,
        Meta(
            ge=2,
            le=1 << 24,
            description="Tuples that a bolt task's receive queue holds; rounded up to a power of two. Storm: 32768; "
            "lower here: short queues stay in the processor's cache and throttle the spout sooner.",
        ),
    ] = msgspec.field(name="topology.executor.receive.buffer.size", default=1024)
    producer_batch_size: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 23,
            description="Tuples that a producer publishes to a queue at once; at most half the queue (the default "
            "adapts to it). 1: no batching. Storm: 1; higher here, because batches end with the "
            "component's turn and delay no tuple for long.",
        ),
    ] = msgspec.field(name="topology.producer.batch.size", default=100)
    acker_executors: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="0: no tuple is tracked: ack is called in the emit, fail never, nothing times out. Any other "
            "number, or unset: the acker of the worker tracks all tuples with an id."
        ),
    ] = msgspec.field(name="topology.acker.executors", default=None)
    message_timeout_secs: Annotated[
        Annotated[float, Meta(gt=0, le=1e8)] | None,
        Meta(
            description="Seconds, fractions allowed, after which a spout's tuple fails if it is not fully processed. "
            "They count from the moment at which a bolt last got a tuple of its tree: time in queues "
            "does not count. Bolt.reset_timeout restarts them. null: never.",
        ),
    ] = msgspec.field(name="topology.message.timeout.secs", default=30.0)
    enable_message_timeouts: Annotated[
        bool,
        Meta(description="false: no tuple times out, and a micro-batch does not wait for tuples that are never acked."),
    ] = msgspec.field(name="topology.enable.message.timeouts", default=True)
    message_timeout_by_progress: Annotated[
        bool,
        Meta(
            description="true: the time-out of a spout's tuple restarts whenever a tuple of its tree is acked "
            "(STORM-2359)."
        ),
    ] = msgspec.field(name="topology.message.timeout.by.progress", default=False)
    max_spout_pending: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Largest number of tuples of a spout task without a verdict; at it the spout is not called. "
            "Unset: any number, up to a million tuples ahead of the oldest one."
        ),
    ] = msgspec.field(name="topology.max.spout.pending", default=None)
    producer_batch_dynamic: Annotated[
        bool,
        Meta(
            description="true: the batch size grows by one with each full batch, up to topology.producer.batch.size, "
            "and is halved with each batch that is published before it is full."
        ),
    ] = msgspec.field(name="topology.producer.batch.dynamic", default=False)
    flush_interval_millis: Annotated[
        int,
        Meta(
            ge=0,
            le=60_000,
            description="Scheduler threads: milliseconds after which batches are published although they are not "
            "full; 0: only at the end of a turn. Off if batches hold one tuple.",
        ),
    ] = msgspec.field(name="topology.batch.flush.interval.millis", default=1)
    spout_recvq_skips: Annotated[
        int,
        Meta(ge=0, le=1 << 31, description="Turns of a spout between two checks for acks and fails."),
    ] = msgspec.field(name="topology.spout.recvq.skips", default=3)

    max_spout_retries: Annotated[
        int,
        Meta(
            ge=0,
            le=1 << 31,
            description="How often a failed or timed-out tuple of a PartitionedSpout is emitted again before it "
            "becomes a dead letter; 0: never. A ReliableSpout uses its own max_fails instead.",
        ),
    ] = msgspec.field(name="topology.max.spout.retries", default=3)
    spout_retry_backoff_millis: Annotated[
        int,
        Meta(
            ge=0,
            le=60_000,
            description="Milliseconds before a failed tuple of a PartitionedSpout is emitted again; doubled with "
            "each further fail, up to a minute. 0: at once.",
        ),
    ] = msgspec.field(name="topology.spout.retry.backoff.millis", default=0)
    dead_letter: Annotated[
        Literal["fail", "stream", "drop"],
        Meta(
            description="Fate of a tuple that still fails after its last retry. fail: the Spark task fails and names "
            "it. stream: it becomes a row of the spout's stream __dead_letter. drop: it is counted, with "
            "one warning."
        ),
    ] = msgspec.field(name="topology.dead.letter", default="fail")

    spout_wait_strategy: Annotated[
        str,
        Meta(
            description=f"How a spout waits if it has nothing to emit: {_STORMS_WAITS}, {_OWN_WAIT} A spout that has "
            "been idle for long waits a hundredth of that time, up to 10 ms. With one thread, the "
            "topology's strategy is used."
        ),
    ] = msgspec.field(name="topology.spout.wait.strategy", default=PROGRESSIVE)
    spout_wait_park_microsec: _ParkMicros = msgspec.field(name="topology.spout.wait.park.microsec", default=100)
    spout_wait_level1_count: _Level1Count = msgspec.field(
        name="topology.spout.wait.progressive.level1.count", default=0
    )
    spout_wait_level2_count: _Level2Count = msgspec.field(
        name="topology.spout.wait.progressive.level2.count", default=0
    )
    spout_wait_level3_sleep_millis: _Level3Millis = msgspec.field(
        name="topology.spout.wait.progressive.level3.sleep.millis", default=1
    )
    bolt_wait_strategy: Annotated[
        str,
        Meta(
            description=f"How a bolt waits if its queue is empty: {_STORMS_WAITS}, {_OWN_WAIT} A tuple ends the wait, "
            "so Storm's two strategies sleep at once instead of polling, with growing sleeps of up to "
            "100 ms. A tuple does not end the wait of a class of your own."
        ),
    ] = msgspec.field(name="topology.bolt.wait.strategy", default=PROGRESSIVE)
    bolt_wait_park_microsec: _ParkMicros = msgspec.field(name="topology.bolt.wait.park.microsec", default=100)
    bolt_wait_level1_count: _Level1Count = msgspec.field(name="topology.bolt.wait.progressive.level1.count", default=1)
    bolt_wait_level2_count: _Level2Count = msgspec.field(
        name="topology.bolt.wait.progressive.level2.count", default=1000
    )
    bolt_wait_level3_sleep_millis: _Level3Millis = msgspec.field(
        name="topology.bolt.wait.progressive.level3.sleep.millis", default=1
    )
    backpressure_wait_strategy: Annotated[
        str,
        Meta(
            description=f"How a producer waits if its destination is full: {_STORMS_WAITS}, {_OWN_WAIT} Free room "
            "ends the wait."
        ),
    ] = msgspec.field(name="topology.backpressure.wait.strategy", default=PROGRESSIVE)
    backpressure_wait_park_microsec: _ParkMicros = msgspec.field(
        name="topology.backpressure.wait.park.microsec", default=100
    )
    backpressure_wait_level1_count: _Level1Count = msgspec.field(
        name="topology.backpressure.wait.progressive.level1.count", default=1
    )
    backpressure_wait_level2_count: _Level2Count = msgspec.field(
        name="topology.backpressure.wait.progressive.level2.count", default=1000
    )
    backpressure_wait_level3_sleep_millis: _Level3Millis = msgspec.field(
        name="topology.backpressure.wait.progressive.level3.sleep.millis", default=1
    )

    debug: Annotated[bool, Meta(description="true: sets Component.debug, and components log at level DEBUG.")] = (
        msgspec.field(name="topology.debug", default=False)
    )
    name: Annotated[str, Meta(description="Name of the topology in logs and errors; empty: the name of the class.")] = (
        msgspec.field(name="topology.name", default="")
    )

    tick_frequency: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="Seconds between the tick tuples of a bolt, fractions allowed, down to a millisecond; unset "
            "or 0: only the final tick of a range. A component's own config wins."
        ),
    ] = msgspec.field(name="topology.tick.tuple.freq.secs", default=None)
    async_max_pending: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 24,
            description="Largest number of running requests of an AsyncBolt's task. At the limit it takes no more "
            "tuples, its queue fills and producers wait.",
        ),
    ] = msgspec.field(name="topology.async.max.pending", default=1000)
    async_request_timeout: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds that a request of an AsyncBolt may take, fractions allowed, before its tuple fails "
            "and its coroutine is cancelled; 0: no limit.",
        ),
    ] = msgspec.field(name="topology.async.request.timeout.secs", default=30.0)
    async_ordered: Annotated[
        bool,
        Meta(
            description="true: emits of an AsyncBolt leave in the order of its tuples, however long each request takes."
        ),
    ] = msgspec.field(name="topology.async.ordered", default=False)
    async_loop: Annotated[
        Literal["auto", "asyncio", "uvloop"],
        Meta(
            description="The event loop of AsyncBolts: uvloop, which must be installed; asyncio; or auto: uvloop if "
            "it is installed."
        ),
    ] = msgspec.field(name="topology.async.loop", default="auto")
    environment: Annotated[
        str,
        Meta(
            description="The entry to use of a `par` that is a dict of environments; needed if there is such a `par`."
        ),
    ] = msgspec.field(name="topology.environment", default="")
    spouts_independent: Annotated[
        bool,
        Meta(
            description="true: bolts with several spouts upstream process each spout's tuples independently. Without "
            "it, a topology is refused if its groupings imply a join of spouts, since tuples of two "
            "spouts never meet in a Spark task. Set it for a topology, or in the config of one bolt."
        ),
    ] = msgspec.field(name="topology.spouts.independent", default=False)
    lint_off: Annotated[
        str,
        Meta(
            description="Warnings about a topology to suppress: codes such as grouping-per-task, separated by "
            "commas. Set it for a topology, or in the config of one component."
        ),
    ] = msgspec.field(name="topology.lint.off", default="")
    log_level: Annotated[
        str,
        Meta(
            description="Level of the loggers of components: trace, debug, info, warn, error or critical; "
            "topology.debug makes it debug."
        ),
    ] = msgspec.field(name="pystorm.log.level", default="info")
    log_path: Annotated[
        str, Meta(description="A directory on every executor: each task also logs to a file there; empty: no file.")
    ] = msgspec.field(name="pystorm.log.path", default="")
    log_file: Annotated[str, Meta(description="Name of the file below pystorm.log.path.")] = msgspec.field(
        name="pystorm.log.file", default="pystorm_{topology_name}_{component_name}_{task_id}_{pid}.log"
    )
    log_format: Annotated[
        str, Meta(description="Format of log lines, as of Python's logging; empty: time, logger, level and message.")
    ] = msgspec.field(name="pystorm.log.format", default="")
    log_max_bytes: Annotated[int, Meta(ge=0, description="Bytes of a log file before it is rotated; 0: never.")] = (
        msgspec.field(name="pystorm.log.max_bytes", default=1_000_000)
    )
    log_backup_count: Annotated[int, Meta(ge=0, description="Rotated log files that are kept for each task.")] = (
        msgspec.field(name="pystorm.log.backup_count", default=10)
    )

    fields_grouping_hash: Annotated[
        Literal["stable", "java"],
        Meta(
            description="stable: equal Python values are one key (1, 1.0, True). java: a key goes to the task that "
            "Storm would choose."
        ),
    ] = msgspec.field(name="topology.fields.grouping.hash", default="stable")
    always_try_serialize: Annotated[
        bool,
        Meta(description="For tests. true: the values of every tuple are deep-copied instead of passed by reference."),
    ] = msgspec.field(name="topology.testing.always.try.serialize", default=False)

    @classmethod
    def defaults_beside(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """A default batch size is at most half the queue, as in Storm."""
        if "producer_batch_size" in given or "receive_buffer_size" not in given:
            return {}
        default = fields_of(cls)["topology.producer.batch.size"].default
        return {"producer_batch_size": min(default, given["receive_buffer_size"] // 2)}

    @property
    def flush_interval_nanos(self) -> int:
        """Nanoseconds between two flush ticks; 0: none, also if batches hold one tuple."""
        return self.flush_interval_millis * 1_000_000 if self.producer_batch_size > 1 else 0

    @property
    def timeout_seconds(self) -> float:
        """Seconds after which a tuple tree times out; 0: never."""
        return self.message_timeout_secs or 0.0 if self.enable_message_timeouts else 0.0

    def wait_options(self, situation: Literal["spout", "bolt", "backpressure"]) -> WaitOptions:
        """The keys of one situation."""
        return WaitOptions(*(getattr(self, f"{situation}_wait_{name}") for name in WaitOptions._fields))

    @property
    def lint_off_codes(self) -> list[str]:
        """The codes in ``lint_off``."""
        return [code.strip() for code in self.lint_off.split(",") if code.strip()]

    def __post_init__(self) -> None:
        for code in self.lint_off_codes:
            if code not in LINT_CODES:
                raise OptionError(f"option 'topology.lint.off' takes {', '.join(LINT_CODES)}. Given: {self.lint_off!r}")
        if self.log_level.lower() not in LOG_LEVELS:
            raise OptionError(
                f"option 'pystorm.log.level' is one of {', '.join(LOG_LEVELS)}. Given: {self.log_level!r}"
            )
        if self.producer_batch_size > self.receive_buffer_size // 2:
            raise OptionError(
                f"topology.producer.batch.size is at most half of topology.executor.receive.buffer.size "
                f"({self.receive_buffer_size}): lower the batch or enlarge the queue. "
                f"Given: {self.producer_batch_size!r}"
            )


class SourceOptions(Options, frozen=True, kw_only=True):
    """Options of ``spark.readStream.format("pystorm")`` and ``spark.read.format("pystorm")``."""

    topology: Annotated[str, Meta(description="The topology as package.module:Class.")] = ""
    config: Annotated[
        str,
        Meta(
            description="Configuration of the topology: a JSON object, the path of a .yaml or .json file, or a preset: "
            "latency or throughput."
        ),
    ] = ""
    path: Annotated[str, Meta(description="The argument of load(path); for spouts that read files.")] = ""
    stream: Annotated[
        str,
        Meta(
            description="The open stream that gives the rows, as component or component.stream; needed if several "
            "are open."
        ),
    ] = ""
    streams: Annotated[
        Literal["one", "all"],
        Meta(description="all: rows of every open stream, with _component, _stream and the union of their columns."),
    ] = "one"
    starting_offsets: Annotated[
        str,
        Meta(
            description='Start of a new query: earliest, latest, or JSON {"spout": {"partition": offset}}; '
            "-2 is earliest, -1 latest."
        ),
    ] = msgspec.field(name="startingOffsets", default="earliest")
    ending_offsets: Annotated[
        str,
        Meta(description='End of a batch read: latest, or JSON {"spout": {"partition": offset}}. Not for streams.'),
    ] = msgspec.field(name="endingOffsets", default="latest")
    max_offsets_per_trigger: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Offsets that one micro-batch may admit, over all partitions."),
    ] = msgspec.field(name="maxOffsetsPerTrigger", default=None)
    min_offsets_per_trigger: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Smallest backlog, in offsets, that starts a micro-batch, unless maxTriggerDelay passes."),
    ] = msgspec.field(name="minOffsetsPerTrigger", default=None)
    max_trigger_delay: Annotated[
        str, Meta(description="How long minOffsetsPerTrigger may delay data: a number with ms, s, m, h or d.")
    ] = msgspec.field(name="maxTriggerDelay", default="15m")
    max_offsets_per_partition: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Offsets that one micro-batch may admit from one spout partition."),
    ] = msgspec.field(name="maxOffsetsPerPartition", default=None)
    min_partitions: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Wanted number of Spark partitions of a micro-batch; larger ranges are split to reach it."),
    ] = msgspec.field(name="minPartitions", default=None)
    max_records_per_partition: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Offsets that one Spark partition reads at most; larger ranges are split, evenly."),
    ] = msgspec.field(name="maxRecordsPerPartition", default=None)
    fail_on_data_loss: Annotated[
        bool,
        Meta(description="Whether a vanished partition or offset fails the query (true) or is logged and skipped."),
    ] = msgspec.field(name="failOnDataLoss", default=True)
    include_metadata: Annotated[
        bool, Meta(description="Adds the columns _component, _stream, _task, _partition and _offset.")
    ] = msgspec.field(name="includeMetadata", default=False)
    delivery_guarantee: Annotated[
        Literal["exactly-once", "best-effort"],
        Meta(
            description="best-effort: spouts without offsets run without a journal; the tuples of a failed task are "
            "lost."
        ),
    ] = msgspec.field(name="delivery.guarantee", default="exactly-once")
    batch_target_millis: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Target duration of a micro-batch in milliseconds. Ranges are sized so that their tasks end "
            "in time; spouts without offsets are polled for that long. Unset: the interval of the "
            "trigger, but at least a second; a second for spouts without offsets."
        ),
    ] = msgspec.field(name="batch.target.millis", default=None)
    initial_rate: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Assumed rate of a partition, in offsets per second, before any task has reported; it limits "
            "the first micro-batch. Unset: the spout's initial_rate, by default 200."
        ),
    ] = msgspec.field(name="backpressure.initialRate", default=None)
    output_batch_rows: Annotated[
        int, Meta(ge=1, le=1 << 24, description="Rows of one Arrow batch that leaves the task.")
    ] = msgspec.field(name="output.batch.rows", default=32_768)
    feedback: Annotated[
        Literal["auto", "off"],
        Meta(
            description="auto: the tasks of a stream send reports to the driver, over a connection of their own, and "
            "the reports determine the size of micro-batches. off: no socket is opened, and only limits "
            "bound micro-batches."
        ),
    ] = "auto"
    feedback_host: Annotated[
        str,
        Meta(
            description="Host name or IP address at which tasks reach the driver with their reports. The driver "
            "listens at it if it is one of its own; 0.0.0.0: all of its addresses. Empty: loopback if "
            "the master is local; else all addresses, and tasks connect to spark.driver.host."
        ),
    ] = msgspec.field(name="feedback.host", default="")
    feedback_port: Annotated[
        int, Meta(ge=0, le=65_535, description="The port at which the driver listens for reports; 0: any free one.")
    ] = msgspec.field(name="feedback.port", default=0)

    @property
    def poll_millis(self) -> int:
        """How long a micro-batch polls spouts without offsets."""
        return 1000 if self.batch_target_millis is None else self.batch_target_millis

    def __post_init__(self) -> None:
        if self.feedback_host and not _is_host(self.feedback_host):
            raise OptionError(
                "option 'feedback.host' is a host name or an IP address, without scheme and port, which is "
                f"feedback.port. Given: {self.feedback_host!r}"
            )


def _is_host(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return len(text) <= 253 and _HOST_NAME.fullmatch(text) is not None
    return True


TABLES: tuple[type[Options], ...] = (SourceOptions, EngineOptions)

T = TypeVar("T", bound=Options)


def shown(key: str, value: Any) -> str:
    """The value as messages and records may show it, cut and without secrets."""
    return given(redacted(key, value))


# Too few: tables are read anew in turn. Too many: tables of notebook cells that were run again stay in memory.
@functools.lru_cache(maxsize=128)
def fields_of(table: type[Options]) -> Mapping[str, msgspec.structs.FieldInfo]:
    """Key → field of a table. Kept, as msgspec evaluates the annotations of the whole table at each call."""
    return MappingProxyType({field.encode_name: field for field in msgspec.structs.fields(table)})


class _Lookup(NamedTuple):
    """A field as ``parse`` looks for it."""

    lowered: str
    key: str
    field: msgspec.structs.FieldInfo
    is_required: bool
    is_family: bool


@functools.lru_cache(maxsize=128)
def _lookups(table: type[Options]) -> tuple[_Lookup, ...]:
    """The fields of a table. Kept, as a worker parses its options for each of its tasks."""
    return tuple(
        _Lookup(key.lower(), key, field, field.required, key.endswith(".*")) for key, field in fields_of(table).items()
    )


def family_of(key: str, families: Iterable[str]) -> str | None:
    """The key such as ``kafka.*``, out of these, whose family this key belongs to."""
    lowered = key.lower()
    for family in families:
        if family.endswith(".*") and lowered.startswith(family[:-1].lower()) and not lowered.endswith("*"):
            return family
    return None


def meaning_of(field: msgspec.structs.FieldInfo) -> str:
    """The one-line meaning of a field; empty if it has none."""
    for meta in typing.get_args(field.type)[1:] if typing.get_origin(field.type) is Annotated else ():
        if isinstance(meta, Meta) and meta.description:
            return meta.description
    return ""


def check_known(given: Iterable[str], tables: Iterable[type[Options]], also: Iterable[str] = ()) -> None:
    """Raises OptionError for the first key that neither a table nor ``also`` has, with the nearest known one. Case does
    not count."""
    named = {key.lower(): key for table in tables for key in fields_of(table)}
    known = {key.lower(): key for key in also} | named
    for key in given:
        if key.lower() not in known and family_of(key, named.values()) is None:
            near = difflib.get_close_matches(key.lower(), known, n=1)
            remedy = f"did you mean {known[near[0]]!r}?" if near else f"known are: {', '.join(sorted(named.values()))}."
            raise OptionError(
                f"unknown option {key!r}: {remedy} A key of your own goes into option 'config' or into "
                f"Topology.config. Given: {key!r}"
            )


def _families(table: type[Options], lowered: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Key such as ``kafka.*`` → its family: the part after ``kafka.``, with the values."""
    families: dict[str, dict[str, Any]] = {each.lowered: {} for each in _lookups(table) if each.is_family}
    for key in lowered if families else ():
        if family := family_of(key, families):
            families[family][key[len(family) - 1 :]] = lowered[key]
    return families


def parse(table: type[T], given: Mapping[str, Any]) -> T:
    """Reads the keys of this table out of ``given`` (others are ignored), strings converted to the field's type.

    Raises OptionError with key, meaning and value.
    """
    lowered = {key.lower(): value for key, value in given.items()}
    lowered.update(_families(table, lowered))
    values = {}
    for lowered_key, key, field, is_required, _ in _lookups(table):
        if lowered_key not in lowered:
            if is_required:
                raise OptionError(f"option {key!r} is needed: {meaning_of(field)} Given: nothing")
            continue
        value = lowered[lowered_key]
        try:
            if isinstance(value, str):
                value.encode()  # half a character is refused here, not by a later reader of the text
            values[field.name] = msgspec.convert(value, field.type, strict=False)
        except (msgspec.ValidationError, UnicodeEncodeError) as error:
            what = cut(str(error), LONGEST_GIVEN)  # it may quote the value
            raise OptionError(f"option {key!r}: {what}. {meaning_of(field)} Given: {shown(key, value)}") from None
    return table(**table.defaults_beside(values), **values)
