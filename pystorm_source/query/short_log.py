"""Shortens Spark's log on the driver's console while a query is awaited: an error for ``explain`` takes one line.

Spark prints a component's exception four times, each with its own stack: 250 lines in front of the four that matter.
"""

import contextlib
import functools
import logging
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

logger = logging.getLogger("pystorm.source")

_OURS = r"pystorm_source\.errors\.\w+: (\[PYSTORM_\w+\]) ?\n?([^\n]*).*"
"""An error of this package in what Spark prints, and all that follows."""
_SAID_AGAIN = (
    r"(?s)^[^\n]*(?:Aborting task|Exception in task [\d.]+ in stage|Query [^\n]*\bid = (?:QUERIES),)[^\n]*\n.*"
)
"""Events that repeat what TaskSetManager logs of the same task, or ``explain`` says of the awaited queries."""
_LONG = r"(?s)^([^\n]*?)(?:: org\.apache\.spark\.|: \[PYTHON|\n).*?"
"""The first line of an event, and what precedes one of our errors. Lazy loops over single characters: Java's other
loops take a stack frame for each."""
_WRITES_ERRORS = re.compile(r"%(?:-?\d+)?[rx]?(?:Ex|ex|xThrowable|rThrowable|throwable|exception)\b|%xEx|%rEx")


@contextlib.contextmanager
def short_log(gateway: Any, queries: Iterable[str]) -> Iterator[None]:
    """In the block, the console of this JVM shows an event with one of our errors in one line, or drops it if it only
    repeats another one. Other events do not change. ``queries``: ids of those whose error ``explain`` reports.
    ``gateway``: None under Spark Connect.

    Appenders that write to files, or in a layout other than text, stay as they are.
    """
    undo: list[Callable[[], None]] = []
    try:
        if gateway is not None:
            undo.extend(_shortened(gateway.jvm, shortening("|".join(map(re.escape, queries)))))
    except Exception:  # another logging system, or a JVM that lets Python call little
        logger.debug("Spark's log stays as it is", exc_info=True)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the JVM may have ended
            for each in undo:
                each()


def shortening(queries: str) -> str:
    """A log4j pattern; the appender's own goes in place of ``%s``."""
    again = _SAID_AGAIN.replace("QUERIES", queries) + _OURS
    return f"%replace{{%replace{{%s}}{{{again}}}{{}}}}{{{_LONG}{_OURS}}}{{$1: $2 $3\n}}"


def _shortened(jvm: Any, around: str) -> Iterator[Callable[[], None]]:
    """Shortens the lines of appenders from now on; yields what undoes it for each."""
    root = jvm.org.apache.logging.log4j.LogManager.getContext(False).getConfiguration().getRootLogger()
    for reference in list(root.getAppenderRefs()):
        appender = root.getAppenders().get(reference.getRef())
        if appender is None or appender.getClass().getSimpleName() != "ConsoleAppender":
            continue
        if appender.getLayout().getClass().getSimpleName() != "PatternLayout":
            continue
        short = _with_pattern(jvm.org.apache.logging.log4j.core, appender, around)
        yield functools.partial(_replace, root, reference, short, appender)
        _replace(root, reference, appender, short)


def _replace(root: Any, reference: Any, old: Any, new: Any) -> None:
    # Order: the new one first, so no event is lost.
    root.addAppender(new, reference.getLevel(), reference.getFilter())
    root.removeAppender(old.getName())


def _with_pattern(core: Any, appender: Any, around: str) -> Any:
    """The same appender, with its pattern inside ``around``."""
    layout = appender.getLayout()
    pattern = layout.getConversionPattern()
    if not _WRITES_ERRORS.search(pattern):
        pattern += "%xEx"  # as log4j does by itself
    pattern = around.replace("%s", pattern)
    short = core.layout.PatternLayout.newBuilder().withPattern(pattern).withCharset(layout.getCharset())
    made = core.appender.ConsoleAppender.newBuilder().setName("pystorm-short").setFilter(appender.getFilter())
    made = made.setTarget(core.appender.ConsoleAppender.Target.valueOf(_target_of(appender)))
    made = made.setLayout(short.withAlwaysWriteExceptions(False).build()).build()
    made.start()
    return made


def _target_of(appender: Any) -> str:
    return "SYSTEM_OUT" if "SYSTEM_OUT" in str(appender.getManager().getName()) else "SYSTEM_ERR"
