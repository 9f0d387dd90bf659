"""The keys of the engine. They keep Storm's names."""

import logging
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.options.duration import parse_duration
from pystorm_source.options.names import listed
from pystorm_source.options.rate_limit import RateLimit, rate_limits
from pystorm_source.options.redis_url import check_redis_url, shown_url
from pystorm_source.options.retry_table import retry_table
from pystorm_source.options.table import Options, fields_of

LINT_CODES = (
    "batch-without-ticks",
    "callbacks-without-ids",
    "cycle",
    "exception-ends-task",
    "grouping-per-task",
    "key-behind-shuffle",
    "key-without-effect",
    "never-ends",
    "processes-of-ranges",
    "rows-returned",
    "runs-again",
    "spouts-apart",
    "stage-differs",
    "state-in-self",
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
_ParkMicros = Annotated[int, Meta(ge=0, le=60_000_000, description="WaitStrategyPark: microseconds of a wait.")]
_Level1Count = Annotated[
    int,
    Meta(ge=0, le=1 << 31, description="WaitStrategyProgressive: number of first waits. They end at once."),
]
_Level2Count = Annotated[
    int,
    Meta(
        ge=0,
        le=1 << 31,
        description="WaitStrategyProgressive: number of next, shortest waits. Only spouts use it.",
    ),
]
_Level3Millis = Annotated[
    int, Meta(ge=0, le=60_000, description="WaitStrategyProgressive: milliseconds of each further wait.")
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
    further = (
        *(
            f"topology.{situation}.wait.{key}"
            for situation in ("spout", "bolt", "backpressure")
            for key in (
                "park.microsec",
                "progressive.level1.count",
                "progressive.level2.count",
                "progressive.level3.sleep.millis",
            )
        ),
        "topology.async.loop",
        "topology.debug",
        "topology.enable.message.timeouts",
        "topology.environment",
        "topology.fields.grouping.hash",
        "topology.name",
        "topology.producer.batch.dynamic",
        "topology.rate.limit.redis.prefix",
        "topology.spout.recvq.skips",
        "topology.spouts.independent",
        "topology.subprocess.timeout.secs",
        "spout.unavailable.timeout",
        "topology.testing.always.try.serialize",
        "trace.sample",
        "trace.setup",
        "pystorm.log.path",
        "pystorm.log.file",
        "pystorm.log.format",
        "pystorm.log.max_bytes",
        "pystorm.log.backup_count",
    )
    takes_json = frozenset(("topology.retry.on",))

    scheduler: Annotated[
        Literal["inline", "threads"],
        Meta(
            description="inline: one thread runs all components. threads: each component's task has a thread, for "
            "bolts that release the GIL (I/O, numpy, Arrow)."
        ),
    ] = msgspec.field(name="topology.scheduler", default="inline")
    stage_partitions: Annotated[
        Annotated[int, Meta(ge=1, le=1 << 20)] | None,
        Meta(
            description="Spark tasks after each shuffle of scope='cluster'. Unset: spark.default.parallelism; on "
            "Spark Connect, spark.sql.shuffle.partitions."
        ),
    ] = msgspec.field(name="topology.stage.partitions", default=None)
    state_buckets: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 20,
            description="Groups of a StatefulBolt's keys, fixed by a checkpoint's first micro-batch. Too few: tasks "
            "wait for the fullest group. Too many: each group costs a call.",
        ),
    ] = msgspec.field(name="topology.state.buckets", default=64)
    receive_buffer_size: Annotated[
        int,
        Meta(
            ge=2,
            le=1 << 24,
            description="Tuples in the receive queue of a bolt's task, rounded up to a power of two.",
        ),
    ] = msgspec.field(name="topology.executor.receive.buffer.size", default=1024)
    receive_buffer_bytes: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 40,
            description="Most bytes of Arrow batches that wait for a bolt's task. A larger batch waits by itself.",
        ),
    ] = msgspec.field(name="topology.executor.receive.buffer.bytes", default=64 << 20)
    producer_batch_size: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 23,
            description="Tuples that enter a queue together, at most half the queue. 1: no batching.",
        ),
    ] = msgspec.field(name="topology.producer.batch.size", default=100)
    acker_executors: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="0: no tuple is tracked: emit calls ack, nothing calls fail, and nothing times out. "
            "Otherwise, tuples with an id are tracked."
        ),
    ] = msgspec.field(name="topology.acker.executors", default=None)
    message_timeout_secs: Annotated[
        Annotated[float, Meta(gt=0, le=1e8)] | None,
        Meta(
            description="A spout's tuple fails this many seconds after a bolt last got a tuple of its tree; time in "
            "queues does not count. null: never.",
        ),
    ] = msgspec.field(name="topology.message.timeout.secs", default=30.0)
    enable_message_timeouts: Annotated[
        bool,
        Meta(description="false: no tuple times out, and micro-batches do not wait for tuples that are never acked."),
    ] = msgspec.field(name="topology.enable.message.timeouts", default=True)
    subprocess_timeout_secs: Annotated[
        Annotated[float, Meta(gt=0, le=1e8)] | None,
        Meta(
            description="Seconds after which a component's call, also initialize or cleanup, fails the Spark task, "
            "which Spark retries. Unset: never."
        ),
    ] = msgspec.field(name="topology.subprocess.timeout.secs", default=None)
    message_timeout_by_progress: Annotated[
        bool,
        Meta(description="true: each ack in a tuple's tree restarts its time-out."),
    ] = msgspec.field(name="topology.message.timeout.by.progress", default=False)
    max_spout_pending: Annotated[
        Annotated[int, Meta(ge=1)] | None,
        Meta(description="Most unfinished tuples of a spout's task. Unset: a million after the oldest one."),
    ] = msgspec.field(name="topology.max.spout.pending", default=None)
    producer_batch_dynamic: Annotated[
        bool,
        Meta(description="true: the batch size adapts, up to topology.producer.batch.size."),
    ] = msgspec.field(name="topology.producer.batch.dynamic", default=False)
    flush_interval_millis: Annotated[
        int,
        Meta(
            ge=0,
            le=60_000,
            description="With topology.scheduler=threads: milliseconds until a partial batch enters a queue. 0: at a "
            "turn's end.",
        ),
    ] = msgspec.field(name="topology.batch.flush.interval.millis", default=1)
    spout_recvq_skips: Annotated[
        int,
        Meta(ge=0, le=1 << 31, description="Turns of a spout between checks for acks and fails."),
    ] = msgspec.field(name="topology.spout.recvq.skips", default=3)

    max_spout_retries: Annotated[
        int,
        Meta(
            ge=0,
            le=1 << 31,
            description="Retries of a tuple of a PartitionedSpout before it becomes a dead letter. A ReliableSpout "
            "uses its max_fails.",
        ),
    ] = msgspec.field(name="topology.max.spout.retries", default=3)
    spout_retry_backoff_millis: Annotated[
        int,
        Meta(
            ge=0,
            le=60_000,
            description="Milliseconds before the engine retries a tuple. Each failure doubles them, up to a minute.",
        ),
    ] = msgspec.field(name="topology.spout.retry.backoff.millis", default=0)
    retry_on: Annotated[
        dict[str, Any] | str,
        Meta(
            description='Exception classes as JSON: {"TimeoutError": "retry", "ValueError": "never"}. retry: repeats '
            "the tuple, even with exit_on_exception; in a spout, repeats calls on the driver, and in a task those of a "
            "CursorSpout or QueueSpout. never: makes the tuple a dead letter at once. Also in a component's config."
        ),
    ] = msgspec.field(name="topology.retry.on", default="")
    spout_poll_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=1e8)] | None,
        Meta(
            description="Seconds between the driver's polls of a PartitionedSpout. 0: at each trigger, up to 100 "
            "times a second. Unset: the spout's poll_seconds, by default 1."
        ),
    ] = msgspec.field(name="spout.poll.seconds", default=None)
    spout_unavailable_timeout: Annotated[
        str,
        Meta(
            description="How long (ms, s, m, h, d) a spout may raise RetryLater, or what topology.retry.on retries, "
            "before the task fails or, on the driver, the query."
        ),
    ] = msgspec.field(name="spout.unavailable.timeout", default="10m")
    dead_letter: Annotated[
        Literal["fail", "stream", "drop"],
        Meta(
            description="For a tuple after its last retry. fail: the Spark task fails and names the tuple. stream: the "
            "tuple becomes a row of the spout's stream __dead_letter. drop: the tuple is only counted."
        ),
    ] = msgspec.field(name="topology.dead.letter", default="fail")

    spout_wait_strategy: Annotated[
        str,
        Meta(
            description="How a spout waits with nothing to emit: WaitStrategyProgressive, WaitStrategyPark, or your "
            "module:Class with prepare(conf, situation) and idle(idle_counter). Per component only with "
            "topology.scheduler=threads."
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
        Meta(description="How a bolt waits at an empty queue. A tuple ends the wait, except with your own class."),
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
        Meta(description="How a producer waits at a full queue. Free room ends the wait."),
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

    debug: Annotated[bool, Meta(description="true: sets Component.debug and logs at level DEBUG.")] = msgspec.field(
        name="topology.debug", default=False
    )
    name: Annotated[str, Meta(description="Name in logs and errors. Empty: the class's name.")] = msgspec.field(
        name="topology.name", default=""
    )

    tick_frequency: Annotated[
        Annotated[float, Meta(ge=0)] | None,
        Meta(
            description="Seconds between a bolt's tick tuples. Unset or 0: only the final tick of a range. A "
            "component's config wins."
        ),
    ] = msgspec.field(name="topology.tick.tuple.freq.secs", default=None)
    async_max_pending: Annotated[
        Annotated[int, Meta(ge=1, le=1 << 24)] | Literal["adaptive"],
        Meta(
            description="Most concurrent requests of a task. adaptive: derived from response times and refusals, up "
            "to 10,000.",
        ),
    ] = msgspec.field(name="topology.async.max.pending", default=1000)
    async_request_timeout: Annotated[
        float,
        Meta(
            ge=0,
            description="Seconds until a request of an AsyncBolt is cancelled and its tuple fails. 0: no limit.",
        ),
    ] = msgspec.field(name="topology.async.request.timeout.secs", default=30.0)
    async_ordered: Annotated[
        bool,
        Meta(description="true: an AsyncBolt's emits leave in the order of its tuples."),
    ] = msgspec.field(name="topology.async.ordered", default=False)
    async_loop: Annotated[
        Literal["auto", "asyncio", "uvloop"],
        Meta(description="auto: uvloop if it is installed, otherwise asyncio."),
    ] = msgspec.field(name="topology.async.loop", default="auto")
    rate_limit: Annotated[
        dict[str, Any] | str,
        Meta(
            description='How often all tasks together may call a service, as JSON: {"api": "100/s", "mail": '
            '"500/10s"}, per s, m, h or d. Bolts and spouts take permits with self.limit(name).'
        ),
    ] = msgspec.field(name="topology.rate.limit", default="")
    bolt_limits: Annotated[
        str,
        Meta(
            description="Comma-separated limits: each call of process, process_batch or process_join takes a permit "
            "of each limit. Set it with spec(limits=[…])."
        ),
    ] = msgspec.field(name="topology.bolt.limits", default="")
    rate_limit_tasks: Annotated[
        Annotated[int, Meta(ge=1, le=1 << 20)] | None,
        Meta(
            description="Divides each limit among this many tasks. If more tasks run at a time, they exceed the "
            "limit. Sinks, batch reads, feedback=off and Spark Connect need this or "
            "topology.rate.limit.redis."
        ),
    ] = msgspec.field(name="topology.rate.limit.tasks", default=None)
    rate_limit_redis: Annotated[
        str,
        Meta(
            description="Redis that issues permits to all its queries: redis://:password@host:6379/0 (rediss:// for "
            "TLS). Not with topology.rate.limit.tasks."
        ),
    ] = msgspec.field(name="topology.rate.limit.redis", default="")
    rate_limit_redis_prefix: Annotated[
        str,
        Meta(
            min_length=1,
            description="Prefix of keys in topology.rate.limit.redis. Queries with different prefixes share nothing.",
        ),
    ] = msgspec.field(name="topology.rate.limit.redis.prefix", default="pystorm:limit")
    breaker_percent: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="Percentage of failed calls in the last second (at least of the last ten) that pauses calls. "
            "0: never.",
        ),
    ] = msgspec.field(name="topology.circuit.breaker.percent", default=50)
    breaker_pause_secs: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Seconds of the first pause. While calls keep failing, pauses double, up to 10 s.",
        ),
    ] = msgspec.field(name="topology.circuit.breaker.pause.secs", default=0.5)
    trace_sample: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Share of micro-batches whose tasks and calls have OpenTelemetry spans, from 0 to 1. 0: none. "
            "Needs opentelemetry-api on driver and executors.",
        ),
    ] = msgspec.field(name="trace.sample", default=0.0)
    trace_setup: Annotated[
        str,
        Meta(
            description="Function as module:function that sets the provider of spans, called once in each Python "
            "process before its first span. Empty: the process has one already."
        ),
    ] = msgspec.field(name="trace.setup", default="")
    environment: Annotated[
        str,
        Meta(description="Key of the entry to use if `par` is a dict."),
    ] = msgspec.field(name="topology.environment", default="")
    spouts_independent: Annotated[
        bool,
        Meta(
            description="true: bolts do not join tuples of several spouts. false: such groupings are refused. Also "
            "in a bolt's config."
        ),
    ] = msgspec.field(name="topology.spouts.independent", default=False)
    lint_off: Annotated[
        str,
        Meta(
            description="Comma-separated codes of warnings to suppress, such as grouping-per-task. Also in a "
            "component's config."
        ),
    ] = msgspec.field(name="topology.lint.off", default="")
    log_level: Annotated[
        str,
        Meta(description="Level of the components' loggers: trace, debug, info, warn, error or critical."),
    ] = msgspec.field(name="pystorm.log.level", default="info")
    log_path: Annotated[
        str, Meta(description="Directory on every executor for the tasks' log files. Empty: no files.")
    ] = msgspec.field(name="pystorm.log.path", default="")
    log_file: Annotated[str, Meta(description="Name of the file in pystorm.log.path.")] = msgspec.field(
        name="pystorm.log.file", default="pystorm_{topology_name}_{component_name}_{task_id}_{pid}.log"
    )
    log_format: Annotated[
        str, Meta(description="Format for Python's logging. Empty: time, logger, level, message.")
    ] = msgspec.field(name="pystorm.log.format", default="")
    log_max_bytes: Annotated[int, Meta(ge=0, description="Bytes before a log file is rotated. 0: never.")] = (
        msgspec.field(name="pystorm.log.max_bytes", default=1_000_000)
    )
    log_backup_count: Annotated[int, Meta(ge=0, description="Rotated log files to keep per task.")] = msgspec.field(
        name="pystorm.log.backup_count", default=10
    )

    fields_grouping_hash: Annotated[
        Literal["stable", "java"],
        Meta(
            description="stable: equal Python values (1, 1.0, True) are one key. java: keys go to the same tasks as "
            "in Storm."
        ),
    ] = msgspec.field(name="topology.fields.grouping.hash", default="stable")
    always_try_serialize: Annotated[
        bool,
        Meta(description="For tests. true: every tuple's values are deep-copied."),
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
    def spout_unavailable_seconds(self) -> float:
        """``spout_unavailable_timeout`` in seconds. Raises OptionError for an invalid duration."""
        return parse_duration("spout.unavailable.timeout", self.spout_unavailable_timeout)

    @property
    def retry_rules(self) -> dict[str, str]:
        """``retry_on`` as a table: name of an exception → retry or never. Raises OptionError for an invalid table."""
        return retry_table(self.retry_on)

    @property
    def limits(self) -> dict[str, RateLimit]:
        """``rate_limit`` as limits by name. Raises OptionError for an invalid limit."""
        return rate_limits(self.rate_limit)

    @property
    def bolt_limit_names(self) -> list[str]:
        """The names in ``bolt_limits``."""
        return listed(self.bolt_limits)

    @property
    def lint_off_codes(self) -> list[str]:
        """The codes in ``lint_off``."""
        return listed(self.lint_off)

    def __post_init__(self) -> None:
        parse_duration("spout.unavailable.timeout", self.spout_unavailable_timeout)
        retry_table(self.retry_on)
        rate_limits(self.rate_limit)
        if self.rate_limit_redis:
            check_redis_url(self.rate_limit_redis)
            if self.rate_limit_tasks is not None:
                raise OptionError(
                    "topology.rate.limit.redis lets tasks share a limit, topology.rate.limit.tasks gives each of them "
                    "a fixed share: leave one of them out. Given: topology.rate.limit.redis="
                    f"{shown_url(self.rate_limit_redis)}, topology.rate.limit.tasks={self.rate_limit_tasks!r}",
                    code="PYSTORM_OPTIONS_CONFLICT",
                )
        for code in self.lint_off_codes:
            if code not in LINT_CODES:
                raise OptionError(
                    f"option 'topology.lint.off' takes {', '.join(LINT_CODES)}. Given: {self.lint_off!r}",
                    code="PYSTORM_INVALID_OPTION",
                )
        if self.log_level.lower() not in LOG_LEVELS:
            raise OptionError(
                f"option 'pystorm.log.level' is one of {', '.join(LOG_LEVELS)}. Given: {self.log_level!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        if self.producer_batch_size > self.receive_buffer_size // 2:
            raise OptionError(
                f"topology.producer.batch.size is at most half of topology.executor.receive.buffer.size "
                f"({self.receive_buffer_size}): lower the batch or enlarge the queue. "
                f"Given: {self.producer_batch_size!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
