"""The keys of the engine. They keep Storm's names."""

import logging
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.options.table import Options, fields_of

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


PROGRESSIVE = "org.apache.storm.policy.WaitStrategyProgressive"
_STORMS_WAITS = "WaitStrategyProgressive, WaitStrategyPark (with or without org.apache.storm.policy.)"
_OWN_WAIT = "or a class of your own, as module:Class, with prepare(conf, situation) and idle(idle_counter)."
_ParkMicros = Annotated[
    int, Meta(ge=0, le=60_000_000, description="WaitStrategyPark: microseconds of a wait; 0: it does not wait.")
]
_Level1Count = Annotated[
    int,
    Meta(ge=0, le=1 << 31, description="WaitStrategyProgressive: waits in a row that end at once, before level 2."),
]
_Level2Count = Annotated[
    int,
    Meta(
        ge=0,
        le=1 << 31,
        description="WaitStrategyProgressive: waits in a row behind them of the shortest time, before level 3. Without "
        "effect where what is waited for ends the wait: for bolts, and for who waits for room.",
    ),
]
_Level3Millis = Annotated[
    int, Meta(ge=0, le=60_000, description="WaitStrategyProgressive: milliseconds of every further wait.")
]


class WaitOptions(NamedTuple):
    """How one situation waits: the five keys ``topology.SITUATION.wait.*``."""

    strategy: str
    park_microsec: int
    level1_count: int
    level2_count: int
    level3_sleep_millis: int


class EngineOptions(Options, frozen=True, kw_only=True):
    """How a topology runs inside one Spark task; set by option or in ``Topology.config``."""

    common = (
        "topology.scheduler",
        "topology.message.timeout.secs",
        "topology.max.spout.retries",
        "topology.dead.letter",
    )

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
            "less here, as short queues stay in the processor's cache and hold the spout back sooner.",
        ),
    ] = msgspec.field(name="topology.executor.receive.buffer.size", default=1024)
    producer_batch_size: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 23,
            description="Tuples that a producer publishes to a queue at once; at most half the queue, which the "
            "default keeps to by itself; 1: each goes straight in. Storm: 1; more here, as batches end with the "
            "component's turn, so that they delay no tuple for long.",
        ),
    ] = msgspec.field(name="topology.producer.batch.size", default=100)
    acker_executors: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="0: no tuple is tracked: spouts are acked in the emit, never told of failures, nothing times "
            "out. Any other number, or unset: the acker of the worker tracks all that have an id."
        ),
    ] = msgspec.field(name="topology.acker.executors", default=None)
    message_timeout_secs: Annotated[
        Annotated[float, Meta(gt=0, le=1e8)] | None,
        Meta(
            description="Seconds, fractions allowed, after which a tuple of a spout fails that was not wholly "
            "processed, counted from when a bolt last got a tuple of its tree: time in queues does not count. "
            "Bolt.reset_timeout begins them anew. null: never.",
        ),
    ] = msgspec.field(name="topology.message.timeout.secs", default=30.0)
    enable_message_timeouts: Annotated[
        bool, Meta(description="false: no tuple times out, and a micro-batch does not wait for those that nobody acks.")
    ] = msgspec.field(name="topology.enable.message.timeouts", default=True)
    message_timeout_by_progress: Annotated[
        bool,
        Meta(description="The time of a spout's tuple begins anew whenever one of its tuples is acked (STORM-2359)."),
    ] = msgspec.field(name="topology.message.timeout.by.progress", default=False)
    max_spout_pending: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(
            description="Tuples of a spout task without a verdict, beyond which it is not asked for more; unset: any "
            "number, as long as none is a million tuples behind."
        ),
    ] = msgspec.field(name="topology.max.spout.pending", default=None)
    producer_batch_dynamic: Annotated[
        bool,
        Meta(
            description="Batches grow by one tuple with each full one, up to topology.producer.batch.size, and are "
            "halved with each that is published before it is full."
        ),
    ] = msgspec.field(name="topology.producer.batch.dynamic", default=False)
    flush_interval_millis: Annotated[
        int,
        Meta(
            ge=0,
            le=60_000,
            description="Milliseconds after which batches that are not full are published, too, under the scheduler "
            "threads; 0: with the end of a turn only. Off where batches hold one tuple.",
        ),
    ] = msgspec.field(name="topology.batch.flush.interval.millis", default=1)
    spout_recvq_skips: Annotated[
        int,
        Meta(ge=0, le=1 << 31, description="Turns of a spout between two in which it looks for acks and fails."),
    ] = msgspec.field(name="topology.spout.recvq.skips", default=3)

    max_spout_retries: Annotated[
        int,
        Meta(
            ge=0,
            le=1 << 31,
            description="How often a tuple of a PartitionedSpout that has failed or timed out is emitted again before "
            "it is a dead letter; 3, as max_fails of a ReliableSpout, which keeps to its own. 0: never.",
        ),
    ] = msgspec.field(name="topology.max.spout.retries", default=3)
    spout_retry_backoff_millis: Annotated[
        int,
        Meta(
            ge=0,
            le=60_000,
            description="Milliseconds before a failed tuple of a PartitionedSpout is emitted again; doubled with each "
            "further fail, up to a minute. 0: at once.",
        ),
    ] = msgspec.field(name="topology.spout.retry.backoff.millis", default=0)
    dead_letter: Annotated[
        Literal["fail", "stream", "drop"],
        Meta(
            description="What becomes of a tuple that no retry is left for. fail: the Spark task fails and names it. "
            "stream: a row of the spout's stream __dead_letter. drop: counted, with one warning."
        ),
    ] = msgspec.field(name="topology.dead.letter", default="fail")

    spout_wait_strategy: Annotated[
        str,
        Meta(
            description=f"How a spout waits that has nothing to emit: {_STORMS_WAITS}, {_OWN_WAIT} One that has had "
            "nothing for long waits a hundredth of that time, up to 10 ms. With one thread, that of the topology."
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
            description=f"How a bolt waits whose queue is empty: {_STORMS_WAITS}, {_OWN_WAIT} A tuple ends the wait, "
            "so Storm's two sleep at once instead of looking often, and ever longer, up to 100 ms; a class of your own "
            "is waited out."
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
            description=f"How a producer waits whose destination is full: {_STORMS_WAITS}, {_OWN_WAIT} Room ends the "
            "wait."
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

    debug: Annotated[bool, Meta(description="Component.debug, and components log at level DEBUG.")] = msgspec.field(
        name="topology.debug", default=False
    )
    name: Annotated[str, Meta(description="Name of the topology in logs and errors; empty: the name of the class.")] = (
        msgspec.field(name="topology.name", default="")
    )

    tick_frequency: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="Seconds between the tick tuples of a bolt, fractions allowed, down to a millisecond; unset or "
            "0: only the one that ends a micro-batch. A component's own config wins."
        ),
    ] = msgspec.field(name="topology.tick.tuple.freq.secs", default=None)
    async_max_pending: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 24,
            description="Requests of an AsyncBolt's task that may be under way; at the bound it takes no more tuples, "
            "so that its queue fills and producers wait.",
        ),
    ] = msgspec.field(name="topology.async.max.pending", default=1000)
    async_request_timeout: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds that a request of an AsyncBolt may take, fractions allowed, before its tuple fails "
            "and its coroutine is cancelled; 0: any time.",
        ),
    ] = msgspec.field(name="topology.async.request.timeout.secs", default=30.0)
    async_ordered: Annotated[
        bool,
        Meta(description="What an AsyncBolt emits leaves in the order of its tuples, however long each request takes."),
    ] = msgspec.field(name="topology.async.ordered", default=False)
    async_loop: Annotated[
        Literal["auto", "asyncio", "uvloop"],
        Meta(
            description="The event loop of AsyncBolts: uvloop, which must be installed, asyncio, or auto: uvloop where "
            "it is installed."
        ),
    ] = msgspec.field(name="topology.async.loop", default="auto")
    environment: Annotated[
        str,
        Meta(description="Which entry of a `par` that is a dict of environments counts; needed where there is one."),
    ] = msgspec.field(name="topology.environment", default="")
    spouts_independent: Annotated[
        bool,
        Meta(
            description="true: bolts that get tuples of several spouts need none of one spout for those of another. "
            "Without it a topology is refused whose groupings say that they do, as spouts never meet in a Spark task. "
            "Of a topology, or in the config of one bolt."
        ),
    ] = msgspec.field(name="topology.spouts.independent", default=False)
    lint_off: Annotated[
        str,
        Meta(
            description="Warnings about a topology that are not wanted: codes such as grouping-per-task, separated by "
            "commas; of a topology, or in the config of one component."
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
        str, Meta(description="A directory on every executor: each task also logs to a file there; empty: to none.")
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
    log_backup_count: Annotated[int, Meta(ge=0, description="Rotated log files that are kept of each task.")] = (
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
        Meta(description="For tests: the values of every tuple are deep-copied, where else they go by reference."),
    ] = msgspec.field(name="topology.testing.always.try.serialize", default=False)

    @classmethod
    def defaults_beside(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        """A batch size that nobody asked for is at most half the queue, as in Storm."""
        if "producer_batch_size" in given or "receive_buffer_size" not in given:
            return {}
        default = fields_of(cls)["topology.producer.batch.size"].default
        return {"producer_batch_size": min(default, given["receive_buffer_size"] // 2)}

    @property
    def flush_interval_nanos(self) -> int:
        """Nanoseconds between two flush ticks; 0: none, also where no batch waits to be full."""
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
