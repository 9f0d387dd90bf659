"""Spouts that read page by page, from a cursor on."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from pystorm_source.api.cursor_page import first_cursor_of, is_full, page_of, partitions_of
from pystorm_source.api.polled_rows import PolledRows
from pystorm_source.api.seen_keys import SeenKeys, digest_of
from pystorm_source.api.spout import Spout
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import MethodMissingError, given

Page = tuple[Iterable[Any], Any]


class CursorSpout(Spout):
    """A source that is read page by page: a REST API, a feed, a table by its key.

    To implement: ``read``. With more than one sequence to read, ``partitions`` and ``first_cursor``, too. One
    Spark task calls them, for one partition after another.

    It needs a journal (option ``journal.path``), unless it is ``replayable``. The journal keeps the rows of a
    micro-batch together with the cursors after them, so every row arrives exactly once, even if pages change: once its
    micro-batch is committed, a page is never read again. Until then, it is read again from its cursor.

    After a full page, the source is asked again at once; after any other page, when ``poll_seconds`` are over. If the
    source is busy, raise ``RetryLater`` in ``read``, ``partitions`` or ``first_cursor``, or let ``topology.retry.on``
    name the exception: the call is made again, with the same arguments.

    Attributes:
        page_rows (int): the ``limit`` of ``read``: rows of a page, at least 1. Set it to the most that the source
            gives. Defaults to 1000.
        poll_seconds (float): seconds, at least 0, until a partition is asked again whose last page was not full, and
            between two calls of ``partitions``. Option ``spout.poll.seconds`` wins. Defaults to 1.0.
        remembered (int): rows of each partition that are remembered by ``row_key``, at least 0. If the cursor goes
            back a little, late rows are found, and known rows are dropped. Each remembered row takes 11 bytes in every
            micro-batch's manifest. Defaults to 0.
        replayable (bool): whether the source gives the same rows, in the same order, behind the same cursor at any
            time; it may only add rows at the end. Then a query needs no journal: Spark's offset has the cursors, and
            several tasks read pages at once. Defaults to False.
        partition (str): the partition that ``read`` is called for.

    Example:
        >>> class Tickets(CursorSpout):
        ...     outputs = ["id long", "title string"]
        ...     page_rows = 2
        ...     tickets = [(1, "no ink"), (2, "no paper"), (3, "no power")]
        ...     def read(self, cursor, limit):
        ...         rows = [row for row in self.tickets if row[0] > (cursor or 0)][:limit]
        ...         return rows, rows[-1][0] if rows else cursor
        >>> from pystorm_source.testing import run_topology
        >>> class Desk(Topology):
        ...     tickets = Tickets.spec()
        >>> run_topology(Desk).rows("tickets")
        [(1, 'no ink'), (2, 'no paper'), (3, 'no power')]
    """

    page_rows: int = 1000
    """Rows that are asked for at once."""
    poll_seconds: ClassVar[float] = 1.0
    """Seconds until a partition without more rows is asked again."""
    remembered: ClassVar[int] = 0
    """Rows of each partition that are known by their keys."""
    replayable: ClassVar[bool] = False
    """Whether rows behind a cursor stay as they are."""
    partition: str = ""
    """The partition that ``read`` is called for."""
    clock: Clock = SystemClock()

    _pystorm_has_notes = True
    # From the first call on. Not made by the constructor, which a subclass may not call.
    _pystorm_pages: "_Pages | None" = None
    # ``read`` of a ready-made spout sets it: whether there are more rows now. None: the size of the page tells.
    _pystorm_has_more: bool | None = None

    def read(self, cursor: Any, limit: int) -> Page:
        """Returns the rows after a cursor, and the cursor after them. To implement.

        Trap: the cursor must move with the rows. The same cursor means that there is nothing more now, and so does a
        page that is not full, or empty: skip empty pages if the source has more after them.

        Args:
            cursor (Any): JSON: what an earlier call has returned, or ``first_cursor``.
            limit (int): rows that are wanted, ``page_rows``. A page may have fewer or more.

        Returns:
            tuple[Iterable[Any], Any]: the rows, and a JSON value: where the next page begins. A row is a sequence of
                the values of ``outputs``, or a mapping of fields to values; missing fields are None.
        """
        raise MethodMissingError(
            f"{type(self).__name__} must define read(cursor, limit)", code="PYSTORM_INVALID_COMPONENT"
        )

    def partitions(self) -> Sequence[str]:
        """Returns the sequences that there are now, such as accounts, shards or tables. One unless overridden.

        Returns:
            Sequence[str]: their names. If one is missing, its cursor is kept until it is back.
        """
        return ("",)

    def first_cursor(self, partition: str) -> Any:
        """Returns where a partition is first read. None unless overridden.

        Args:
            partition (str): one of ``partitions``.

        Returns:
            Any: a JSON value.
        """
        return None

    def row_key(self, row: Any) -> Any:
        """Returns what identifies a row, for ``remembered``. The complete row unless overridden.

        Args:
            row (Any): a row of ``read``.

        Returns:
            Any: a value, or values, of Python's own types. If changed rows must come again, return for example the id
                and the time of the last change.
        """
        return row

    def next_tuple(self) -> Any:
        """Emits the next page, if it is time for one.

        Returns:
            Any: False if the micro-batch has rows, and no partition has more, so they need not wait for its end.

        Raises:
            TopologyError: ``read`` or ``partitions`` has returned what they may not.
        """
        return self._pystorm_all_pages().next()

    def _pystorm_all_pages(self) -> "_Pages":
        if self._pystorm_pages is None:
            self._pystorm_pages = _Pages(self)
        return self._pystorm_pages

    def _pystorm_notes(self) -> str:
        return self._pystorm_all_pages().cursors()

    def _pystorm_resume(self, notes: str | None) -> None:
        self._pystorm_pages = _Pages(self, notes)


class _Pages(PolledRows):
    """Where a ``CursorSpout`` is in each partition, and when each is due."""

    def __init__(self, spout: CursorSpout, cursors: str | None = None):
        super().__init__(spout)
        found = {"cursors": {}} if cursors is None else json.loads(cursors)
        self._cursors: dict[str, Any] = found["cursors"]
        self._seen = {partition: SeenKeys.of(kept) for partition, kept in found.get("seen", {}).items()}
        self._names: Sequence[str] | None = None  # before they were asked for
        self._turn = 0
        self._names_due = self._now()
        self._due: dict[str, float] = {}
        self._resting: set[str] = set()  # partitions that had nothing more when they were read last
        self._has_rows = False
        self._sizes: dict[str, int] = {}  # partition → rows of its last page

    @property
    def is_over(self) -> bool:
        """Whether no partition had more when it was read last."""
        return self._names is not None and self._resting.issuperset(self._names)

    def cursor_of(self, partition: str) -> Any:
        """Where its next page begins; None if it was not read."""
        return self._cursors.get(partition)

    def cursors(self) -> str:
        """As JSON text. A new micro-batch begins."""
        self._has_rows = False
        found: dict[str, Any] = {"cursors": self._cursors, "over": self.is_over}
        if self._spout.remembered:
            found["seen"] = {name: seen.text() for name, seen in self._seen.items()}
        return json.dumps(found, sort_keys=True, separators=(",", ":"))

    def next(self) -> bool | None:
        """Emits a page of the next partition that is due. False if no partition is, and there are rows."""
        now = self._now()
        if self._names is None or now >= self._names_due:
            self._names = partitions_of(self._spout)
            self._names_due = now + self._poll_seconds
        for step in range(len(self._names)):
            name = self._names[(self._turn + step) % len(self._names)]
            if now >= self._due.get(name, now):
                following = (self._turn + step + 1) % len(self._names)
                try:
                    self._read(name)
                except Exception as error:
                    if not self._spout._pystorm_is_busy(error):  # else the same partition is asked first again
                        self._turn = following
                    raise
                self._turn = following
                return None
        if not (self._has_rows and self.is_over):
            return None
        self._has_rows = False  # once: the next call waits for more
        return False

    def _read(self, partition: str) -> None:
        spout = self._spout
        cursor = self._cursors[partition] if partition in self._cursors else first_cursor_of(spout, partition)
        before = self._sizes.get(partition)
        try:
            page = page_of(spout, partition, cursor, before)
        except Exception as error:
            # It is asked again, and not at once. A busy source: when the engine says, or the time of its outage would
            # end with a call that asks nothing.
            if not (spout.exit_on_exception or spout._pystorm_is_busy(error)):
                self._due[partition] = self._now() + self._poll_seconds
            raise
        count = self._sizes[partition] = len(page.rows)
        new = page.rows if not spout.remembered else self._unseen(partition, page.rows)
        self._cursors[partition] = page.following
        if page.following == cursor and not new and is_full(count, spout.page_rows, before):
            spout._any_logger().warning(
                "read() of %s gave %d known rows and the cursor %s again: if there are more rows behind them, they are "
                "never read. Let the cursor go back less, or set page_rows higher",
                type(spout).__name__,
                count,
                given(cursor),
            )
        self._due[partition] = self._now() + (0.0 if page.goes_on else self._poll_seconds)
        self._resting.discard(partition) if page.goes_on else self._resting.add(partition)
        self._has_rows = self._has_rows or bool(new)
        self._emit(new)

    def _unseen(self, partition: str, rows: list[Any]) -> list[Any]:
        seen = self._seen.get(partition)
        if seen is None:
            seen = self._seen[partition] = SeenKeys()
        digests = [digest_of(self._spout.row_key(row)) for row in rows]  # all of them before one counts as seen
        found = [row for row, digest in zip(rows, digests, strict=True) if seen.add(digest)]
        seen.forget(max(self._spout.remembered, len(rows)))
        return found
