"""The common base of spouts and bolts: lifecycle, identity, logging."""

import logging
import os
from numbers import Real
from typing import Any, ClassVar, Never, NoReturn

from cython_core.arrow.row_error import coded
from cython_core.routing.output_collector import has_subclass
from cython_core.routing.own_thread import counts_for_run
from cython_core.tuples.tuple import Tuple
from pystorm_source.api.component_log import ErrorLog, logger_of
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.limit import Limit
from pystorm_source.api.spec_arguments import checked_spec
from pystorm_source.api.stream import Stream
from pystorm_source.errors import ArgumentError, ArgumentTypeError, NotSupportedError, given
from pystorm_source.errors.door import door
from pystorm_source.errors.known_secrets import remember
from pystorm_source.errors.user_frames import in_a_line, shown, users_line
from pystorm_source.options import LOG_LEVELS, EngineOptions, parse

SERIALIZERS = ("json", "msgpack")
LENT = tuple(
    f"_pystorm_{name}"
    for name in ("metrics", "reported", "errors", "options", "rules", "limits", "permits", "spans", "outage")
)


class Component:
    """Base of spouts and bolts: lifecycle, identity, logging. Subclass ``Spout`` or ``Bolt``. streamparse's class.

    The identity is None until the engine starts the component; it is there when ``initialize`` is called.

    Attributes:
        outputs (list[str | Stream]): fields of the default stream, such as ``"word string"``, and other streams.
        par (int | dict[str, int]): tasks inside one Spark task, or environment → tasks. Defaults to 1.
        config (dict): configuration of this component only. Defaults to None.
        exit_on_exception (bool): an exception fails the Spark task; if False it fails the tuple. Defaults to True.
        component_name (str): name in the topology.
        task_id (int): number of the task in the topology, from 1.
        topology_name (str): ``topology.name``, or the name of the class.
        storm_conf (dict): the merged configuration, as ``initialize`` gets it.
        context (dict): identity of the task, as ``initialize`` gets it.
        logger (logging.Logger): ``pystorm.component.<name>``.
        debug (bool): ``topology.debug``.

    Example:
        >>> class Tagged(Bolt):
        ...     outputs = ["line string"]
        ...     def initialize(self, conf, context):
        ...         self.tag = conf.get("tag", "-")
        ...     def process(self, tup):
        ...         self.emit([f"{self.tag} {self.component_name} {tup.values.line}"])
        >>> from pystorm_source.spouts import MemorySpout
        >>> from pystorm_source.testing import run_topology
        >>> class Tags(Topology):
        ...     lines = MemorySpout.spec(fields=["line string"], rows=[["a"]])
        ...     tagged = Tagged.spec(inputs=[lines], config={"tag": "x"})
        >>> run_topology(Tags).rows("tagged")
        [('x tagged a',)]
    """

    outputs: ClassVar[Any] = None
    par: ClassVar[int | dict[str, int]] = 1
    config: ClassVar[dict[str, Any] | None] = None
    exit_on_exception: bool = True

    topology_name: str | None = None
    component_name: str | None = None
    task_id: int | None = None
    debug: bool | None = None
    storm_conf: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    logger: logging.Logger | None = None
    pid: int
    serializer: str = "json"

    # The engine's: name → count, last and sum of report_metric's values; arguments of raise_exception; the log for
    # them.
    _pystorm_metrics: dict[str, dict[str, Any]] | None = None
    _pystorm_reported: Any = None  # the executor's Reported
    _pystorm_errors: ErrorLog | None = None  # of the worker
    _pystorm_options: EngineOptions | None = None  # of the plan
    # Whether the journal keeps notes of this spout with each micro-batch. Its source repeats what is not journaled, so
    # nothing is recovered from an attempt that broke off.
    _pystorm_has_notes: ClassVar[bool] = False
    _pystorm_place: Any = None  # the worker's InputPlace
    _pystorm_limits: Any = None  # the worker's WorkerLimits
    _pystorm_rules: Any = None  # its FailureRules, of topology.retry.on
    _pystorm_permits: Any = None  # the TaskWaits of its task
    _pystorm_caches: Any = None  # the worker's WorkerCaches
    _pystorm_lookups: Any = None  # the TaskLookups of its task
    _pystorm_spans: Any = None  # the CallSpans of its task; None without trace.sample

    def __init__(
        self,
        input_stream: Any = None,
        output_stream: Any = None,
        rdb_signal: Any = None,
        serializer: str = "json",
        **others: Never,
    ):
        """Takes streamparse's arguments and ignores them: values travel in memory, through no pipe.

        Args:
            input_stream (Any): ignored.
            output_stream (Any): ignored.
            rdb_signal (Any): ignored.
            serializer (str): ignored, but one that streamparse knows. Defaults to 'json'.
            others (Never): none.

        Raises:
            ArgumentError: a serializer other than json and msgpack.
            ArgumentTypeError: any other keyword, such as ``inputs``, which ``spec`` takes.
        """
        if others:
            name = type(self).__name__
            raise ArgumentTypeError(
                f"{name}(...) makes an instance and takes no {', '.join(others)}: in a topology write "
                f"{name}.spec({', '.join(f'{key}=...' for key in others)}). Given: {given(others)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        if serializer not in SERIALIZERS:
            raise ArgumentError(
                f"a serializer is one of {', '.join(SERIALIZERS)}, and none is used here: leave it out. "
                f"Given: {given(serializer)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        self.pid = os.getpid()
        self.serializer = serializer

    @door
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        has_subclass(cls)
        spec = cls.__dict__.get("spec")
        if isinstance(spec, classmethod):
            cls.spec = classmethod(checked_spec(spec.__func__))  # type: ignore[method-assign,assignment]

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Called once in each task before its first tuple: open connections here, not in the constructor.

        Args:
            conf (dict): the merged configuration: Topology, options of the reader, this component's own.
            context (dict): identity of the task: ``taskid``, ``componentid``, ``place``, …
        """

    def cleanup(self) -> None:
        """Called once when the task's worker ends. Trap: not called if the process is killed."""

    def log(self, message: Any, level: str | None = None) -> None:
        """Logs the message to ``pystorm.component.<name>``, whatever ``pystorm.log.level`` is.

        Args:
            message (Any): what to log, as ``str`` makes it.
            level (str): trace, debug, info, warn, warning, error or critical. Defaults to info; others count as info.
        """
        if self._pystorm_sends({"command": "log", "msg": str(message), "level": _STORM_LEVELS.get(level or "info", 2)}):
            return
        logger: Any = self._any_logger()
        if not isinstance(logger, logging.Logger):  # one of the user's own
            logger.log(LOG_LEVELS.get(level or "info", logging.INFO), str(message))
            return
        # Not logger.log(), which would ask for the level of the logger.
        file, line, function, stack = logger.findCaller(stacklevel=2)
        number = LOG_LEVELS.get(level or "info", logging.INFO)
        logger.handle(logger.makeRecord(logger.name, number, file, line, str(message), (), None, function, None, stack))

    def limit(self, name: str, permits: int = 1) -> Limit:
        """One call of a service within a rate limit: ``async with self.limit("api"):`` in an ``AsyncBolt``,
        ``with self.limit("api"):`` in other bolts and in spouts, in any of their methods.

        Entering waits for a permit of ``topology.rate.limit``, which all tasks of the query share, and its spouts on
        the driver. No time-out counts this wait. The way the block exits tells the limit's circuit breaker whether the
        service is healthy (docs/EFFECTS.md).

        Args:
            name (str): a name of ``topology.rate.limit``.
            permits (int): how many the call takes, at least 1; for a call with many rows, perhaps one per row. The call
                that tries the service again after an outage takes one. Defaults to 1.

        Returns:
            Limit: to enter once.

        Raises:
            ArgumentError: no such name, or less than one permit.
            RuntimeError: the component is in no running topology.
            OptionError: fixed shares (``topology.rate.limit.tasks``) leave none to the driver.
            TopologyError: they leave none to this process of the task.

        Example:
            >>> import asyncio
            >>> from pystorm_source import AsyncBolt, Topology
            >>> from pystorm_source.spouts import MemorySpout
            >>> from pystorm_source.testing import run_topology
            >>> class Ask(AsyncBolt):
            ...     outputs = ["n long"]
            ...     async def process(self, tup):
            ...         async with self.limit("api"):
            ...             await asyncio.sleep(0.05)  # a call of the service
            ...         self.emit([tup.values.n])
            >>> class Asks(Topology):
            ...     config = {"topology.rate.limit": {"api": "100/s"}}
            ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[n] for n in range(50)])
            ...     ask = Ask.spec(inputs=[numbers])
            >>> len(run_topology(Asks).rows("ask"))
            50
        """
        if self._pystorm_limits is None:
            raise coded(
                RuntimeError,
                "PYSTORM_EMIT_OUTSIDE_OF_RUN",
                f"{type(self).__name__}.limit: it is in no running topology: run it by run_topology, or by "
                f"Spark. Given: {given(name)}",
            )
        if not isinstance(permits, int) or permits < 1:
            raise ArgumentError(
                f"limit({name!r}): permits must be an int of at least 1. Given: {given(permits)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
        return Limit(self, self._pystorm_limits.permits(name), permits)

    def report_metric(self, name: str, value: Any) -> None:
        """Adds a value to a metric of this task, which reports the count, the last value and, for numbers, the sum.

        Args:
            name (str): name of the metric.
            value (Any): a number, or a value that is kept as text.

        Raises:
            ArgumentTypeError: a name that is no str.
        """
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"the name of a metric must be a str. Given: {given(name)}", code="PYSTORM_INVALID_ARGUMENT"
            )
        if self._pystorm_sends({"command": "metrics", "name": name, "params": value}):
            return
        if not counts_for_run(self):
            return
        if self._pystorm_metrics is None:
            self._pystorm_metrics = {}
        metric = self._pystorm_metrics.setdefault(name, {"count": 0, "last": None, "sum": 0})
        metric["count"] += 1
        if isinstance(value, (int, float)) or not isinstance(value, Real):
            last = value
        else:
            last = float(value)  # a number of numpy or of fractions, which JSON does not have
        if isinstance(last, (int, float)):
            metric["sum"] += last
        metric["last"] = last if last is None or isinstance(last, (int, float, str)) else repr(last)

    def raise_exception(self, exception: BaseException, tup: Any = None) -> None:
        """Reports an exception without raising it: logs it with its traceback and counts it as an error of this task.

        It logs the first three exceptions of each type and line of code, then their number once a minute. If
        ``topology.retry.on`` retries them, it logs only the first: a one-line warning, with the traceback at DEBUG.

        Args:
            exception (BaseException): what was caught.
            tup (Tuple | list[Tuple]): what the component was working on. Defaults to None.
        """
        logger = self._any_logger()
        log = self._pystorm_errors
        retried = getattr(self._pystorm_reported, "retries", False)
        if log is None or log.takes(self.component_name or type(self).__name__, logger, exception, retried):
            name = type(exception).__name__
            message = (
                f"Python {name} raised while processing Tuple {given(tup)}\n" if tup else f"Python {name} raised\n"
            )
            message += shown(exception) + "\n"
            if self._pystorm_sends({"command": "error", "msg": message}):
                self._pystorm_sends({"command": "sync"})
                return
            if retried:
                logger.warning("%s", _retried_text(exception, tup))
                logger.debug("%s", message)
            else:
                logger.error("%s", message)
        if self._pystorm_reported is not None:
            self._pystorm_reported.append((exception, tup))

    @staticmethod
    def is_heartbeat(tup: Tuple) -> bool:
        """Whether this is a heartbeat of Storm's. None come here; for components that ask.

        Args:
            tup (Tuple): any tuple.
        """
        return tup.task == -1 and tup.stream == "__heartbeat"

    def run(self) -> NoReturn:
        """streamparse's main loop of a process, which the engine does not have for a single component.

        Raises:
            NotSupportedError: always. Run the topology: ``pystorm-source run package.module:Topology``.
        """
        raise NotSupportedError(
            "a component does not run alone: run its topology with `pystorm-source run package.module:Topology`, or "
            f'read it with spark.readStream.format("pystorm"). Given: {type(self).__name__}.run()',
            code="PYSTORM_NOT_SUPPORTED",
        )

    def send_message(self, message: dict[str, Any]) -> None:
        """A seam for unit tests written for pystorm: a test may replace this method of a component in no topology.

        The replacement gets what pystorm would send for ``emit``, ``ack``, ``fail``, ``log`` and ``report_metric``.

        Args:
            message (dict): a message of Storm's multi-language protocol.

        Raises:
            NotSupportedError: called as it is: there is no pipe to Storm.
        """
        raise NotSupportedError(
            "there is no pipe to Storm: call emit, ack, fail, log or report_metric; in a test, replace send_message or "
            f"run the topology. Given: {given(message)}",
            code="PYSTORM_NOT_SUPPORTED",
        )

    def read_task_ids(self) -> NoReturn:
        """A seam like ``send_message``: old unit tests replace it to return the task ids that Storm gives for an emit.

        Raises:
            NotSupportedError: called as it is: there is no pipe to Storm.
        """
        raise NotSupportedError(
            "there is no pipe to Storm: the engine calls process, next_tuple, ack and fail; in a test, call these or "
            f"run the topology. Given: {type(self).__name__}.read_task_ids()",
            code="PYSTORM_NOT_SUPPORTED",
        )

    def _pystorm_sends(self, message: dict[str, Any]) -> bool:
        """Whether this component is in no topology and a test has replaced ``send_message``, which then got the
        message. The core calls it for ``emit``, ``ack`` and ``fail``."""
        if getattr(self, "_pystorm_collector", None) is not None:
            return False
        if type(self).send_message is Component.send_message and "send_message" not in vars(self):
            return False
        self.send_message(message)
        return True

    def _any_logger(self) -> logging.Logger:
        return self.logger or logging.getLogger(f"pystorm.component.{type(self).__name__}")

    def _pystorm_lend(self, inner: "Component") -> None:
        """The engine's: ``inner``, which this component runs as a part of itself, reports and takes permits as it."""
        for name in LENT:
            setattr(inner, name, getattr(self, name))

    def _start(self, conf: dict[str, Any], context: dict[str, Any]) -> Any:
        """The engine's: gives the component its identity, then initializes it."""
        self._setup_component(conf, context)
        remember(conf)
        return self.initialize(conf, context)

    def _setup_component(self, storm_conf: dict[str, Any], context: dict[str, Any]) -> None:
        self.storm_conf = storm_conf
        self.context = context
        self.topology_name = storm_conf.get("topology.name", "")
        self.task_id = context.get("taskid")
        self.component_name = context.get("componentid") or context.get("task->component", {}).get(
            str(self.task_id), ""
        )
        self.pid = os.getpid()
        options = self._pystorm_options
        if options is None:  # in no topology, but in a test
            options = parse(EngineOptions, storm_conf)
        self.debug = options.debug
        self.logger = logger_of(self, options)

    @classmethod
    def _streams(cls) -> tuple[Stream, ...]:
        return Stream.all_of(cls.outputs, given_by=cls.__name__)

    @classmethod
    def spec(cls, *args: Any, **kwargs: Any) -> ComponentSpec:
        """Defined by ``Spout.spec`` and ``Bolt.spec``.

        Returns:
            ComponentSpec: never here.

        Raises:
            ArgumentTypeError: always.
        """
        raise ArgumentTypeError(
            f"spec() is defined by Spout and Bolt; subclass one of them. Given: {given(cls)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )


# Storm's numbers for the levels in the messages of its protocol.
_STORM_LEVELS = {"trace": 0, "debug": 1, "info": 2, "warn": 3, "warning": 3, "error": 4, "critical": 4}


def _retried_text(exception: BaseException, tup: Any) -> str:
    """One line: retries were asked for, so no reader of the log has anything to do yet."""
    place = f" at {line}" if (line := users_line(exception)) else ""
    of = f" of Tuple {given(tup)}" if tup else ""
    return f"topology.retry.on retries {in_a_line(exception)}{place}{of}; further ones are counted"
