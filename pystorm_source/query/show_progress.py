"""The newest micro-batch of a query as a small table, redrawn in place."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from pystorm_source.clock import SystemClock
from pystorm_source.query.notebook import CellOutput, in_notebook
from pystorm_source.query.progress import progress
from pystorm_source.records.progress_table import as_html, as_text, headline, standing
from pystorm_source.records.record import PystormProgress

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery


def show_progress(
    query: "StreamingQuery", source: str | None = None, *, timeout: float | None = None, every: float = 1.0
) -> None:
    """Shows what a query does, in a few lines that are redrawn after each micro-batch, until the query ends.

    The lines say what holds it back and what to change, the state of admission, and a row for each component. In a
    notebook they are the output of the cell, and in a terminal they are replaced in place; elsewhere, such as in a log,
    each micro-batch adds two lines. An interrupt (Ctrl-C, or the notebook's stop button) ends the call, not the query.

    Args:
        query (StreamingQuery): a query that reads ``format("pystorm")``, or a topology.
        source (str | None): the topology's name, if the query reads several. Defaults to None: the only one.
        timeout (float | None): seconds after which it returns, though the query runs on. Defaults to None: never.
        every (float): seconds between two looks for something new. Defaults to 1.0.

    Raises:
        UsageError: it is no query of this package, or ``source`` does not say which of several, as in ``progress``.

    Example:
        >>> from pystorm_source import read_stream, show_progress
        >>> from pystorm_source.spouts import MemorySpout
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [2]])
        >>> query = read_stream(spark, Numbers).writeStream.format("noop").trigger(availableNow=True).start()
        >>> show_progress(query)
        micro-batch 0: ...
    """
    clock = SystemClock()
    end = clock.monotonic() + timeout if timeout is not None else float("inf")
    show = _to_notebook() if in_notebook() else _to_terminal() if sys.stdout.isatty() else _to_log
    shown: PystormProgress | None = None
    while True:
        # Asked before the look, which then finds the last record. The look also refuses what is not a query.
        is_active = getattr(query, "isActive", False)
        newest = progress(query, source)
        if newest is not None and newest != shown:
            show(newest)
            shown = newest
        left = end - clock.monotonic()
        if not is_active or left <= 0:
            return
        clock.sleep(min(every, left))


def _to_notebook() -> Callable[[PystormProgress], None]:
    output = CellOutput()
    return lambda record: output.show(as_html(record), as_text(record))


def _to_terminal() -> Callable[[PystormProgress], None]:
    lines = 0

    def show(record: PystormProgress) -> None:
        nonlocal lines
        text = as_text(record)
        up = f"\x1b[{lines}A\x1b[J" if lines else ""
        print(f"{up}{text}", flush=True)
        lines = text.count("\n") + 1

    return show


def _to_log(record: PystormProgress) -> None:
    print(f"{standing(record)}\n  {headline(record)}", flush=True)
