"""Logging of components: Python's logging, under ``pystorm.component.<name>``.

    self.logger ──► pystorm.component.<name> ──► pystorm ──► root        as every logger of a program
         └► a file of the task's own, if ``pystorm.log.path`` is set

A process without a log handler, such as a Spark Python worker, writes the records to its standard error: the executor's
log.
"""

import logging
import os
import sys
import threading
import weakref
from logging.handlers import RotatingFileHandler
from typing import Any

from pystorm_source.clock import Clock
from pystorm_source.errors import LONGEST_GIVEN, OptionError, said
from pystorm_source.options import LOG_LEVELS, EngineOptions

FIRST = 3
"""Exceptions of a kind that are logged in full. Fewer: no second tuple with it is shown. More: thirty lines each."""
SECONDS_BETWEEN = 60.0
"""Between two counts of a kind. Less: they fill the log. More: readers learn late that it goes on."""
MOST_KINDS = 1_000
"""Kinds that are distinguished. Fewer: a forgotten kind is logged in full again. More: code that is generated at run
time, each time under a new name, fills the memory."""

FORMAT = "%(asctime)s - %(name)s - %(levelname)s - %(message)s"


class StormHandler(logging.Handler):
    """A handler of ``logging`` under streamparse's name: writes to standard error, which is the executor's log.

    Args:
        serializer (Any): ignored; streamparse's argument. Defaults to None.

    Example:
        >>> import contextlib, io, logging
        >>> text = io.StringIO()
        >>> with contextlib.redirect_stderr(text):
        ...     StormHandler().emit(logging.makeLogRecord({"msg": "a line"}))
        >>> text.getvalue()
        'a line\\n'
    """

    def __init__(self, serializer: Any = None):
        """Takes streamparse's argument and ignores it."""
        super().__init__()
        self.serializer = serializer

    def emit(self, record: logging.LogRecord) -> None:
        """Writes the record, formatted.

        Args:
            record (logging.LogRecord): what was logged.
        """
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except Exception:
            self.handleError(record)


class LogStream:
    """A text stream whose lines are logged, under streamparse's name.

    It does not replace ``sys.stdout``: there is no protocol that prints could disturb.

    Args:
        logger (logging.Logger): what logs the lines.

    Example:
        >>> import logging
        >>> from pystorm_source.api import LogStream
        >>> print("a line", file=LogStream(logging.getLogger("prints")))
    """

    def __init__(self, logger: logging.Logger):
        self.logger = logger

    def write(self, message: str) -> None:
        """Logs the message at level INFO, unless it is blank.

        Args:
            message (str): the text.
        """
        if message.strip():
            self.logger.info(message)

    def flush(self) -> None:
        """Nothing waits."""


class _Kind:
    """Exceptions of one kind: how many there were, and how many, since when, the log does not mention yet."""

    def __init__(self, logger: Any, name: str, retried: bool):
        self.logger = logger
        self.name = name
        self.first = 1 if retried else FIRST
        self.level = logging.WARNING if retried else logging.ERROR
        self.count = 0
        self.unlogged = 0
        self.logged_at = 0.0
        self.last = ""


class ErrorLog:
    """Keeps the log of a worker readable when a thousand tuples are bad: it logs the first ``FIRST`` exceptions of each
    kind (component, type and line of code) in full, then their number once a minute.

    ``clock``: the worker's. Any thread may call it.
    """

    def __init__(self, clock: Clock):
        self._clock = clock
        self._kinds: dict[tuple[str, str, str, bool], _Kind] = {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """A component's state may be pickled: the engine's own attributes are left out."""
        return type(None), ()

    def takes(self, component: str, logger: Any, error: BaseException, retried: bool = False) -> bool:
        """Whether to log this exception itself; otherwise it is counted. ``retried``: by ``topology.retry.on``, so one
        warning is enough."""
        key = (component, type(error).__name__, _line_of(error), retried)
        with self._lock:
            kind = self._kinds.get(key)
            if kind is None:
                if len(self._kinds) >= MOST_KINDS:
                    self._log_count(self._kinds.pop(next(iter(self._kinds))))
                kind = self._kinds[key] = _Kind(logger, f"component {component!r}: {key[1]} at {key[2]}", retried)
            kind.count += 1
            if kind.count <= kind.first:
                kind.logged_at = self._clock.monotonic()
                return True
            kind.unlogged += 1
            kind.last = said(error, LONGEST_GIVEN)
            if self._clock.monotonic() - kind.logged_at >= SECONDS_BETWEEN:
                self._log_count(kind)
            return False

    def log_counts(self, everything: bool = False) -> None:
        """Logs the counts that are a minute old; with ``everything`` all of them."""
        now = self._clock.monotonic()
        with self._lock:
            for kind in self._kinds.values():
                if everything or now - kind.logged_at >= SECONDS_BETWEEN:
                    self._log_count(kind)

    def _log_count(self, kind: _Kind) -> None:
        if kind.unlogged == 0:
            return
        now = self._clock.monotonic()
        kind.logger.log(
            kind.level,
            "%s: %d more in %.0f s, %d in all; the last one: %s",
            kind.name,
            kind.unlogged,
            now - kind.logged_at,
            kind.count,
            kind.last,
        )
        kind.unlogged, kind.logged_at = 0, now


def _line_of(error: BaseException) -> str:
    """The place that raised it, as file:line."""
    trace = error.__traceback__
    if trace is None:
        return "no line"
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


class _LastResort(StormHandler):
    """Writes if no other handler would: silent as soon as the root logger has a handler."""

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            super().emit(record)


class _TaskLogger(logging.Logger):
    """The logger of one task, with its own file; its records also go to the component's logger of the same name.

    Not registered with ``logging``: it lives and dies with its component.
    """

    def __init__(self, component_logger: logging.Logger):
        super().__init__(component_logger.name)
        self.parent = component_logger

    def close(self) -> None:
        """Closes the file."""
        for handler in list(self.handlers):
            self.removeHandler(handler)
            handler.close()

    def isEnabledFor(self, level: int) -> bool:
        # The base class caches the answer, and only registered loggers are notified when it changes.
        return self.manager.disable < level and level >= self.getEffectiveLevel()


_last_resort = _LastResort()


def logger_of(component: Any, options: EngineOptions) -> logging.Logger:
    """The logger of a component that has its identity, set up by the keys ``pystorm.log.*`` and ``topology.debug``.

    A log file belongs to the component and is closed with it. Raises OptionError if the name of the file or its
    directory cannot be made.
    """
    if isinstance(component.logger, _TaskLogger):  # started again
        component.logger.close()
    logger = logging.getLogger(f"pystorm.component.{component.component_name}")
    logger.setLevel(logging.DEBUG if options.debug else LOG_LEVELS[options.log_level.lower()])
    ours = logging.getLogger("pystorm")
    if _last_resort not in ours.handlers:
        ours.addHandler(_last_resort)
        if ours.level == logging.NOTSET and not logging.getLogger().handlers:
            ours.setLevel(logging.INFO)  # the root's, WARNING, would drop why a query is throttled
    _last_resort.setFormatter(logging.Formatter(options.log_format or FORMAT))
    if not options.log_path:
        return logger
    task_logger = _TaskLogger(logger)
    task_logger.addHandler(_file_handler(component, options))
    weakref.finalize(component, task_logger.close)
    return task_logger


def _file_handler(component: Any, options: EngineOptions) -> RotatingFileHandler:
    try:
        name = options.log_file.format(
            topology_name=component.topology_name,
            component_name=component.component_name,
            task_id=component.task_id,
            pid=component.pid,
        )
    except (KeyError, IndexError, ValueError) as error:
        raise OptionError(
            "option 'pystorm.log.file' takes {topology_name}, {component_name}, {task_id} and {pid}, not "
            f"{error}. Given: {options.log_file!r}",
            code="PYSTORM_INVALID_OPTION",
        ) from None
    try:
        os.makedirs(options.log_path, exist_ok=True)
        handler = RotatingFileHandler(
            os.path.join(options.log_path, name),
            maxBytes=options.log_max_bytes,
            backupCount=options.log_backup_count,
            encoding="utf-8",
        )
    except OSError as error:
        raise OptionError(
            f"option 'pystorm.log.path' must be a directory that every Spark worker may write to: {error}. "
            f"Given: {options.log_path!r}",
            code="PYSTORM_NOT_WRITABLE",
        ) from error
    handler.setFormatter(logging.Formatter(options.log_format or FORMAT))
    return handler
