"""The common base of spouts and bolts: lifecycle, identity, logging."""

import logging
import os
from numbers import Real
from typing import Any, ClassVar, NoReturn

from cython_core.output_collector import has_subclass
from cython_core.tuple import Tuple
from pystorm_source.api.component_log import ErrorLog, logger_of
from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.stream import Stream
from pystorm_source.errors import given, traced
from pystorm_source.options import LOG_LEVELS, EngineOptions, parse

SERIALIZERS = ("json", "msgpack")


class Component:
    """Base of spouts and bolts, in streamparse's shape.

    Class attributes: ``outputs`` (list of field names and/or ``Stream``), ``par`` (tasks inside one Spark task),
    ``config`` (dict for this component only). Identity (``component_name``, ``task_id``, ``topology_name``, …) and
    ``logger`` are None until the engine starts the component, before it calls ``initialize``.
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
    _pystorm_reported: list[tuple[BaseException, Any]] | None = None
    _pystorm_errors: ErrorLog | None = None  # of the worker

    def __init__(
        self, input_stream: Any = None, output_stream: Any = None, rdb_signal: Any = None, serializer: str = "json"
    ):
        """Takes streamparse's four arguments and ignores them: values travel in memory, no pipe is read or written and
        no signal handled. Raises ValueError for a serializer that streamparse does not know."""
        if serializer not in SERIALIZERS:
            raise ValueError(
                f"a serializer is one of {', '.join(SERIALIZERS)}, and none is used here: leave it out. "
                f"Given: {given(serializer)}"
            )
        self.pid = os.getpid()
        self.serializer = serializer

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        has_subclass(cls)

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Called once before the first tuple, positionally. ``conf``: merged configuration; ``context``: this task's
        identity."""

    def cleanup(self) -> None:
        """Called once when the task's worker stops; not called if the process is killed."""

    def log(self, message: Any, level: str | None = None) -> None:
        """Logs the message to ``pystorm.component.<name>``, whatever ``pystorm.log.level`` is.

        ``level``: trace, debug, info, warn, warning, error or critical; others count as info.
        """
        if self._pystorm_told({"command": "log", "msg": str(message), "level": _STORM_LEVELS.get(level or "info", 2)}):
            return
        logger: Any = self._any_logger()
        if not isinstance(logger, logging.Logger):  # one of the user's own
            logger.log(LOG_LEVELS.get(level or "info", logging.INFO), str(message))
            return
        # Not logger.log(), which would ask for the level of the logger.
        file, line, function, stack = logger.findCaller(stacklevel=2)
        number = LOG_LEVELS.get(level or "info", logging.INFO)
        logger.handle(logger.makeRecord(logger.name, number, file, line, str(message), (), None, function, None, stack))

    def report_metric(self, name: str, value: Any) -> None:
        """Adds a value to a metric of this task: how often, the last value and, of numbers, the sum are reported.

        Raises TypeError for a name that is not a str.
        """
        if not isinstance(name, str):
            raise TypeError(f"the name of a metric must be a str. Given: {given(name)}")
        if self._pystorm_told({"command": "metrics", "name": name, "params": value}):
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

        Of exceptions of one type from one line of code the first three are logged, then their number once a minute.
        ``tup``: the tuple that was being worked on, or several.
        """
        logger = self._any_logger()
        log = self._pystorm_errors
        if log is None or log.takes(self.component_name or type(self).__name__, logger, exception):
            name = type(exception).__name__
            message = (
                f"Python {name} raised while processing Tuple {given(tup)}\n" if tup else f"Python {name} raised\n"
            )
            message += traced(exception)
            if self._pystorm_told({"command": "error", "msg": message}):
                self._pystorm_told({"command": "sync"})
                return
            logger.error("%s", message)
        if self._pystorm_reported is not None:
            self._pystorm_reported.append((exception, tup))

    @staticmethod
    def is_heartbeat(tup: Tuple) -> bool:
        """Whether this is a heartbeat of Storm's, which do not come here."""
        return tup.task == -1 and tup.stream == "__heartbeat"

    def run(self) -> NoReturn:
        """Raises NotImplementedError: there is no process per task that could run one component."""
        raise NotImplementedError(
            "a component does not run alone: run its topology with `pystorm-source run package.module:Topology`, or "
            f'read it with spark.readStream.format("pystorm"). Given: {type(self).__name__}.run()'
        )

    def send_message(self, message: dict[str, Any]) -> None:
        """A seam for unit tests written for pystorm: if a test replaces this method, on a component that is in no
        topology, it gets the messages that pystorm would send. Not replaced, it raises NotImplementedError."""
        raise NotImplementedError(
            "there is no pipe to Storm: call emit, ack, fail, log or report_metric; in a test, replace send_message or "
            f"run the topology. Given: {given(message)}"
        )

    def read_message(self) -> NoReturn:
        """Raises NotImplementedError, as the other ``read_`` methods of pystorm do: there is no pipe to Storm."""
        self._no_pipe("read_message")

    def read_command(self) -> NoReturn:
        """As ``read_message``."""
        self._no_pipe("read_command")

    def read_task_ids(self) -> NoReturn:
        """As ``read_message``."""
        self._no_pipe("read_task_ids")

    def read_handshake(self) -> NoReturn:
        """As ``read_message``."""
        self._no_pipe("read_handshake")

    def read_tuple(self) -> NoReturn:
        """As ``read_message``."""
        self._no_pipe("read_tuple")

    def _run(self) -> NoReturn:
        self._no_pipe("_run")

    def _no_pipe(self, method: str) -> NoReturn:
        raise NotImplementedError(
            "there is no pipe to Storm: the engine calls process, next_tuple, ack and fail; in a test, call these or "
            f"run the topology. Given: {type(self).__name__}.{method}()"
        )

    def _pystorm_told(self, message: dict[str, Any]) -> bool:
        """Whether this component is in no topology and a test has replaced ``send_message``, which has got the message
        then. The core asks it for ``emit``, ``ack`` and ``fail``."""
        if getattr(self, "_pystorm_collector", None) is not None:
            return False
        if type(self).send_message is Component.send_message and "send_message" not in vars(self):
            return False
        self.send_message(message)
        return True

    def _any_logger(self) -> logging.Logger:
        return self.logger or logging.getLogger(f"pystorm.component.{type(self).__name__}")

    def _start(self, conf: dict[str, Any], context: dict[str, Any]) -> Any:
        """The engine's: gives the component its identity, then initializes it."""
        self._setup_component(conf, context)
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
        options = parse(EngineOptions, storm_conf)  # the conf itself may hold "true", as options of Spark do
        self.debug = options.debug
        self.logger = logger_of(self, options)

    @classmethod
    def _streams(cls) -> tuple[Stream, ...]:
        return Stream.all_of(cls.outputs, given_by=cls.__name__)

    @classmethod
    def spec(cls, *args: Any, **kwargs: Any) -> ComponentSpec:
        raise TypeError(f"spec() is defined by Spout and Bolt; subclass one of them. Given: {given(cls)}")


# Storm's numbers for the levels, as they stand in the messages of its protocol.
_STORM_LEVELS = {"trace": 0, "debug": 1, "info": 2, "warn": 3, "warning": 3, "error": 4, "critical": 4}
