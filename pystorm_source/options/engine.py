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
_STORMS_WAITS = "WaitStrategyProgressive, WaitStrategyPark (with or without org.apache.storm.policy.)"
_OWN_WAIT = "or your own class, as module:Class, with prepare(conf, situation) and idle(idle_counter)."
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
        description="WaitStrategyProgressive: number of shortest possible waits before level 3. Ignored for bolts and "
        "back-pressure, which a tuple or free room wakes.",
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
        "spout.unavailable.timeout",
        "topology.testing.always.try.serialize",
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
            description="inline: one thread runs all executors in turn. threads: a thread per executor, for bolts "
            "that release the interpreter's lock (I/O, numpy, Arrow)."
        ),
    ] = msgspec.field(name="topology.scheduler", default="inline")
    stage_partitions: Annotated[
        Annotated[int, Meta(ge=1, le=1 << 20)] | None,
        Meta(
            description="scope='cluster': Spark tasks of each stage after a cut. Unset: the cores of the cluster "
            "(spark.default.parallelism); over Spark Connect, spark.sql.shuffle.partitions."
        ),
    ] = msgspec.field(name="topology.stage.partitions", default=None)
    state_buckets: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 20,
            description="Number of buckets that hold the keys of a StatefulBolt in Spark's state store; a task has "
            "several. Fixed with the first micro-batch of a checkpoint. Too few: tasks wait for the one with most "
            "keys; too many: each costs a call.",
        ),
    ] = msgspec.field(name="topology.state.buckets", default=64)
    receive_buffer_size: Annotated[
        int,
        Meta(
            ge=2,
            le=1 << 24,
            description="Tuples that a bolt task's receive queue holds, rounded up to a power of two. Storm: 32768; "
            "lower here, because short queues stay in the processor's cache and throttle the spout sooner.",
        ),
    ] = msgspec.field(name="topology.executor.receive.buffer.size", default=1024)
    receive_buffer_bytes: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 40,
            description="Most bytes of Arrow batches that wait for a bolt task; a larger batch waits by itself. If "
            "several wait, topology.executor.receive.buffer.size bounds their rows, too.",
        ),
    ] = msgspec.field(name="topology.executor.receive.buffer.bytes", default=64 << 20)
    producer_batch_size: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 23,
            description="Tuples that a producer publishes to a queue at once, at most half the queue (the default "
            "adapts to it). 1: no batching. Storm: 1; higher here, because batches end with the component's turn and "
            "delay no tuple for long.",
        ),
    ] = msgspec.field(name="topology.producer.batch.size", default=100)
    acker_executors: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(
            description="0: tuples are not tracked: ack is called in the emit, fail is never called, and nothing "
            "times out. Any other number, or unset: the worker's acker tracks all tuples with an id."
        ),
    ] = msgspec.field(name="topology.acker.executors", default=None)
    message_timeout_secs: Annotated[
        Annotated[float, Meta(gt=0, le=1e8)] | None,
        Meta(
            description="Seconds, fractions allowed, after which a spout's tuple fails if it is not fully processed. "
            "They count from the last time that a bolt got a tuple of its tree, so time in queues does not count. "
            "Bolt.reset_timeout restarts them. null: never.",
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
            description="Most tuples of a spout task without a verdict; at that number, the spout is not called. "
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
            description="Scheduler threads: milliseconds after which batches are published even if they are not full; "
            "0: only at the end of a turn. Off if batches hold one tuple.",
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
            "becomes a dead letter; 0: never. A ReliableSpout uses its max_fails instead.",
        ),
    ] = msgspec.field(name="topology.max.spout.retries", default=3)
    spout_retry_backoff_millis: Annotated[
        int,
        Meta(
            ge=0,
            le=60_000,
            description="Milliseconds before a failed tuple of a PartitionedSpout is emitted again, doubled with each "
            "further fail, up to a minute. 0: at once.",
        ),
    ] = msgspec.field(name="topology.spout.retry.backoff.millis", default=0)
    retry_on: Annotated[
        dict[str, Any] | str,
        Meta(
            description="Which exceptions of bolts, and of spouts on the driver, are worth a retry: a JSON object of "
            'class names, bare or dotted, such as {"TimeoutError": "retry", "ValueError": "never", '
            '"aiohttp.ClientResponseError": "retry"}. Subclasses count; the most specific class decides. retry: the '
            "tuple fails and is emitted again, regardless of exit_on_exception. never: it is a dead letter after one "
            "attempt. Others: as without this option. On the driver, retry means that the spout's call is repeated "
            "(spout.unavailable.timeout). For a topology, or in the config of one component."
        ),
    ] = msgspec.field(name="topology.retry.on", default="")
    spout_poll_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=1e8)] | None,
        Meta(
            description="Seconds, fractions allowed, between two polls of a PartitionedSpout by the driver: the "
            "longest delay until it sees new rows. 0: with each trigger, up to 100 times a second while a query is "
            "idle. Unset: the spout's poll_seconds, by default 1. For a topology, or in the config of one spout."
        ),
    ] = msgspec.field(name="spout.poll.seconds", default=None)
    spout_unavailable_timeout: Annotated[
        str,
        Meta(
            description="How long a source may be unavailable before the query ends: a number with ms, s, m, h or d. "
            "It is unavailable while calls of its spout raise RetryLater or, on the driver, exceptions that "
            "topology.retry.on retries. For a topology, or in the config of one spout."
        ),
    ] = msgspec.field(name="spout.unavailable.timeout", default="10m")
    dead_letter: Annotated[
        Literal["fail", "stream", "drop"],
        Meta(
            description="What happens to a tuple that still fails after its last retry. fail: the Spark task fails "
            "and names it. stream: it becomes a row of the spout's stream __dead_letter. drop: it is counted, with "
            "one warning."
        ),
    ] = msgspec.field(name="topology.dead.letter", default="fail")

    spout_wait_strategy: Annotated[
        str,
        Meta(
            description=f"How a spout waits if it has nothing to emit: {_STORMS_WAITS}, {_OWN_WAIT} A spout that has "
            "been idle for long waits a hundredth of that time, up to 10 ms. With one thread, the topology's strategy "
            "is used."
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
            "so Storm's two strategies sleep at once instead of polling, for growing times of up to 100 ms. A tuple "
            "does not end the wait of your own class."
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
    name: Annotated[str, Meta(description="Name of the topology in logs and errors; empty: the class's name.")] = (
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
        Annotated[int, Meta(ge=1, le=1 << 24)] | Literal["adaptive"],
        Meta(
            description="Most requests that a task of an AsyncBolt runs at a time. At the limit it takes no more "
            "tuples, its queue fills and producers wait. adaptive: found from response times and refusals, 10,000 at "
            "most.",
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
            description="true: an AsyncBolt's emits leave in the order of its tuples, no matter how long each request "
            "takes."
        ),
    ] = msgspec.field(name="topology.async.ordered", default=False)
    async_loop: Annotated[
        Literal["auto", "asyncio", "uvloop"],
        Meta(
            description="The event loop of AsyncBolts: uvloop, which must be installed; asyncio; or auto: uvloop if "
            "it is installed."
        ),
    ] = msgspec.field(name="topology.async.loop", default="auto")
    rate_limit: Annotated[
        dict[str, Any] | str,
        Meta(
            description="How often all tasks of the query together may call a service: a JSON object of names and "
            'rates, such as {"api": "100/s", "mail": "30/m"}: a number of calls per s, m, h or d, or per several of '
            "them (500/10s). Bolts take a permit by Bolt.limit(name). Tasks get permits from a process on the driver, "
            "or from a Redis."
        ),
    ] = msgspec.field(name="topology.rate.limit", default="")
    bolt_limits: Annotated[
        str,
        Meta(
            description="Names from topology.rate.limit, separated by commas: each call of a bolt's process, "
            "process_batch or process_join takes a permit of each. Set it for a bolt, by spec(limits=[…])."
        ),
    ] = msgspec.field(name="topology.bolt.limits", default="")
    rate_limit_tasks: Annotated[
        Annotated[int, Meta(ge=1, le=1 << 20)] | None,
        Meta(
            description="Divides each limit into this many fixed shares, one per task, so that tasks ask no other "
            "process. Give the most tasks that run at a time: with more, the limit is exceeded; with fewer, it is not "
            "used up. Sinks, batch reads, feedback=off and Spark Connect need this or topology.rate.limit.redis."
        ),
    ] = msgspec.field(name="topology.rate.limit.tasks", default=None)
    rate_limit_redis: Annotated[
        str,
        Meta(
            description="A Redis that gives permits to tasks of every kind, such as redis://:password@host:6379/0 "
            "(rediss:// for TLS): all queries that name a limit at the same Redis share it. Not together with "
            "topology.rate.limit.tasks."
        ),
    ] = msgspec.field(name="topology.rate.limit.redis", default="")
    rate_limit_redis_prefix: Annotated[
        str,
        Meta(
            min_length=1,
            description="Prefix of the keys in that Redis: the limit api has the keys PREFIX:{api} and "
            "PREFIX:{api}:tasks. Queries with different prefixes share nothing.",
        ),
    ] = msgspec.field(name="topology.rate.limit.redis.prefix", default="pystorm:limit")
    breaker_percent: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="Share of failed calls within a limit, in percent, at which calls pause: over the last "
            "second, and at least ten calls. Then one call probes whether the service works again. 0: never.",
        ),
    ] = msgspec.field(name="topology.circuit.breaker.percent", default=50)
    breaker_pause_secs: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            description="Seconds of the first pause when calls of a service fail. The pause doubles, up to 10 s, "
            "each time the probe fails or calls fail again soon after it.",
        ),
    ] = msgspec.field(name="topology.circuit.breaker.pause.secs", default=0.5)
    environment: Annotated[
        str,
        Meta(
            description="Which entry to use of a `par` that is a dict of environments; needed if there is such a `par`."
        ),
    ] = msgspec.field(name="topology.environment", default="")
    spouts_independent: Annotated[
        bool,
        Meta(
            description="true: bolts with several spouts upstream process each spout's tuples independently. Without "
            "it, a topology whose groupings imply a join of spouts is refused, because tuples of two spouts never "
            "meet in a Spark task. Set it for a topology, or in the config of one bolt."
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
            description="Level of the components' loggers: trace, debug, info, warn, error or critical; "
            "topology.debug makes it debug."
        ),
    ] = msgspec.field(name="pystorm.log.level", default="info")
    log_path: Annotated[
        str, Meta(description="A directory on every executor where each task also logs to a file; empty: no file.")
    ] = msgspec.field(name="pystorm.log.path", default="")
    log_file: Annotated[str, Meta(description="Name of the file in pystorm.log.path.")] = msgspec.field(
        name="pystorm.log.file", default="pystorm_{topology_name}_{component_name}_{task_id}_{pid}.log"
    )
    log_format: Annotated[
        str, Meta(description="Format of log lines, as for Python's logging; empty: time, logger, level and message.")
    ] = msgspec.field(name="pystorm.log.format", default="")
    log_max_bytes: Annotated[int, Meta(ge=0, description="Bytes of a log file before it is rotated; 0: never.")] = (
        msgspec.field(name="pystorm.log.max_bytes", default=1_000_000)
    )
    log_backup_count: Annotated[int, Meta(ge=0, description="Rotated log files to keep for each task.")] = (
        msgspec.field(name="pystorm.log.backup_count", default=10)
    )

    fields_grouping_hash: Annotated[
        Literal["stable", "java"],
        Meta(
            description="stable: equal Python values are the same key (1, 1.0, True). java: a key goes to the task "
            "that Storm would choose."
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
