"""The page of a query in the process that holds the query: in a notebook an output that is refreshed in place."""

import logging
import os
import threading
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

from pystorm_source.errors import OptionError
from pystorm_source.errors.door import door
from pystorm_source.observe.page.document import document, framed
from pystorm_source.observe.page.view import View
from pystorm_source.query.notebook import CellOutput, in_notebook
from pystorm_source.query.query_records import QueryRecords
from pystorm_source.query.standing import name_of
from pystorm_source.records.progress_table import as_text

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

logger = logging.getLogger("pystorm.source")


@door
def ui(query: "StreamingQuery", source: str | None = None, *, every: float = 2.0, height: int = 900) -> "QueryPage":
    """Shows what a query does: the bottleneck and what to change, the topology, admission, partitions, errors.

    In a notebook it is an output of the cell, refreshed in place while the query runs, also when the cell has ended.
    There is no server and no request: the output contains all that it shows. Outside a notebook nothing is shown:
    ``save`` writes the page into a file, and ``pystorm-source ui`` in a terminal beside the job serves it.

    Args:
        query (StreamingQuery): a query that reads ``format("pystorm")``, or a topology.
        source (str | None): the topology's name, if the query reads several. Defaults to None: the only one.
        every (float): seconds between two looks for something new. Defaults to 2.0.
        height (int): of the output, in pixels. Defaults to 900.

    Returns:
        QueryPage: the page; its ``stop`` ends the refreshing.

    Raises:
        UsageError: it is no query of this package, or ``source`` does not say which of several, as in ``progress``.

    Example:
        >>> from pystorm_source import read_stream, ui
        >>> from pystorm_source.spouts import MemorySpout
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [2]])
        >>> query = read_stream(spark, Numbers).writeStream.format("noop").trigger(availableNow=True).start()
        >>> query.awaitTermination()
        >>> page = ui(query)
        >>> page.save("numbers.html")
    """
    page = QueryPage(query, source)
    page.refresh()
    if in_notebook():
        page.follow(CellOutput(), every, height)
    return page


class QueryPage:
    """The page of a query, as ``ui`` gives it.

    Args:
        query (StreamingQuery): the query.
        source (str | None): the topology's name, if the query reads several. Defaults to None: the only one.

    Example:
        >>> from pystorm_source.query.ui import QueryPage
        >>> QueryPage.__name__
        'QueryPage'
    """

    def __init__(self, query: "StreamingQuery", source: str | None = None):
        self._query = query
        self._found = QueryRecords(query, source)
        self._state = "running"
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._key = uuid.uuid4().hex

    def refresh(self) -> bool:
        """Whether there is something new since the last look."""
        with self._lock:
            # Asked before the look, which then finds the last record. The look also refuses what is not a query.
            state = "running" if getattr(self._query, "isActive", False) else "ended"
            changed = self._found.look()
            changed = changed or state != self._state
            self._state = state
            return changed

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page as it is now into one HTML file, which needs no network.

        Args:
            path (str | PathLike): the file.

        Raises:
            OptionError: it cannot be written.
        """
        self.refresh()
        try:
            Path(path).write_text(document(self._view()), encoding="utf-8")
        except OSError as error:
            raise OptionError(
                f"the page cannot be written ({error.strerror}): give a file in a folder that is there and writable. "
                f"Given: {os.fspath(path)!r}",
                code="PYSTORM_NOT_WRITABLE",
            ) from None

    def stop(self) -> None:
        """Ends the refreshing; what is shown stays."""
        self._stopped.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def follow(self, output: CellOutput, every: float, height: int) -> None:
        """Shows it there now, and again whenever there is something new, until the query ends.

        Args:
            output (CellOutput): where.
            every (float): seconds between two looks.
            height (int): of the output, in pixels.
        """
        self._show(output, height)
        # Without the cell's context, because programs that run whole notebooks skip messages of a cell that has ended.
        # The output is found by its id.
        self._thread = threading.Thread(
            target=self._follow, args=(output, every, height), name="pystorm-page", daemon=True
        )
        self._thread.start()

    def _follow(self, output: CellOutput, every: float, height: int) -> None:
        try:
            while self._state != "ended" and not self._stopped.wait(every):
                if self.refresh():
                    self._show(output, height)
        except Exception:
            # The session was stopped, or the driver is gone: the page stays as it is.
            logger.debug("the page of a query is not refreshed any more", exc_info=True)

    def _show(self, output: CellOutput, height: int) -> None:
        records = self._found.records
        text = as_text(records[-1]) if records else "no micro-batch has ended yet"
        output.show(framed(self._view(), self._key, height), text)

    def _view(self) -> View:
        return View.of(self._found.records, title=self._query.name or "", run=str(self._query.runId), state=self._state)

    def __repr__(self) -> str:
        """Its query, and what you can do with it."""
        shown = "refreshed in place; .stop() ends that" if self._thread is not None else ".save(FILE) writes it"
        return f"<page of {name_of(self._query)}: {shown}>"
