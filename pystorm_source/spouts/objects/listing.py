"""Finds new objects: lists names after the greatest known one, and now and then the complete prefix.

    names ──►  a…                 day=1/…              day=2/k   day=2/p │ day=2/q  day=3/a
               └───────────── sweep of all ─────────────────────────────┘│
                                                        └ of the folder ┘│
                                                               watermark ┴─ tail: whatever is there is new

The *tail* costs one request for a thousand new objects, and asks nothing of what is known. Names that come late and are
smaller than the watermark are found by *sweeps*, which compare names with the known ones: one of the folder of the
watermark, one of all. A sweep goes on for a moment of each look, and rests for a multiple of the time that it took: a
short one is made often, one of a million names seldom, more often while sweeps find something. The first look of a
process sweeps all names to the end, because it may be the only one. A store that does not list by name (a local folder)
has only sweeps.

What is found is known when it is handed over, not before: an error at a later page must not lose it.
"""

from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from pystorm_source.clock import Clock
from pystorm_source.spouts.objects.known import KnownObjects
from pystorm_source.spouts.objects.options import ObjectsOptions
from pystorm_source.spouts.objects.segment import Found
from pystorm_source.spouts.objects.store import asking

MOST = 50_000
"""Objects that a look gives at once. Too few: a first listing writes many segments. Too many: memory."""
SWEEP_SECONDS = 0.2
"""Time that a sweep may take in one look. Too short: a sweep of many names takes days. Too long: micro-batches wait."""
_LEAST_REST, _MOST_REST = 4.0, 100.0
"""Multiples of a sweep's time for which it rests. Less: it takes most of the time, and of the price. More: a name that
comes late waits for it."""
_LONGEST_REST = 3600.0
_PAGE = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Listing:
    """``Listing(store, options, clock)``. ``store``: of the prefix."""

    def __init__(self, store: Any, options: ObjectsOptions, clock: Clock):
        self._store = store
        self._options = options
        self._glob = options.glob_pattern
        self._clock = clock
        self._all = _Sweep(clock)
        self._folder = _Sweep(clock)
        self._has_all = False

    def renew(self) -> None:
        """Makes the next look sweep all names to the end, like the first one."""
        self._has_all = False

    def new(self, known: KnownObjects, watermark: str, newest: int) -> Iterator[list[Found]]:
        """Lists of new objects, which are added to ``known``. ``newest``: the latest time that is known."""
        yield from self._new(known, watermark, newest, not self._has_all)
        self._has_all = True

    def _new(self, known: KnownObjects, watermark: str, newest: int, complete: bool) -> Iterator[list[Found]]:
        """``complete``: nothing is left for the next look."""
        # Without a watermark, known names are in no order: they come from an offset.
        has_tail = self._options.incremental != "false" if watermark else not len(known)
        has_tail = has_tail and not self._options.is_local
        if has_tail:
            # A store may ignore where to begin, or order names in another way.
            behind = ([each for each in page if each.path > watermark] for page in self._pages(watermark, newest))
            for found in _gathered(behind):
                known.add(found)
                yield found
        if has_tail and (self._options.incremental == "true" or not watermark):
            return
        folder = watermark.rpartition("/")[0]
        if has_tail and folder and not complete:
            yield from self._swept(self._folder, folder + "/", known, newest, False)
        yield from self._swept(self._all, "", known, newest, complete)

    def _swept(
        self, sweep: "_Sweep", begin: str, known: KnownObjects, newest: int, complete: bool
    ) -> Iterator[list[Found]]:
        """What a sweep finds in its share of this look."""
        if complete:
            sweep.stop()
        always = self._options.is_local or self._options.incremental == "false"

        def late() -> Iterator[list[Found]]:
            for page in sweep.pages(lambda: self._pages(begin, newest), complete, always):
                found = known.unknown(page)
                sweep.finds = sweep.finds or bool(found)
                yield found

        for found in _gathered(late()):
            known.add(found)
            yield found

    def _pages(self, begin: str, newest: int) -> Iterator[list[Found]]:
        """Yields the objects to read after a name, in pages of the store."""
        with asking(self._options.path):
            pages = iter(self._store.list(offset=begin or None, chunk_size=_PAGE))
        while True:
            with asking(self._options.path):
                page = next(pages, None)
            if page is None:
                return
            yield list(self._wanted(page, newest))

    def _wanted(self, page: Any, newest: int) -> Iterator[Found]:
        options = self._options
        oldest = None if options.max_age_micros is None else newest - options.max_age_micros
        for meta in page:
            path = meta["path"]
            folder, _, name = path.rpartition("/")
            hidden = path[0] in "._" or "/." in path or "/_" in path
            if hidden or not meta["size"] or (folder and not options.recursive):
                continue
            if self._glob is not None and not self._glob.fullmatch(name):
                continue
            modified = round((meta["last_modified"] - _EPOCH).total_seconds() * 1_000_000)
            if oldest is None or modified >= oldest:
                yield Found(path, meta["size"], modified, meta["e_tag"] or "")


class _Sweep:
    """A listing of known names that goes on from look to look. ``finds``: whether it has found something new."""

    def __init__(self, clock: Clock):
        self._clock = clock
        self._pages: Iterator[list[Found]] | None = None
        self._rest = _LEAST_REST
        self._taken = 0.0
        self._due = 0.0
        self.finds = False

    def stop(self) -> None:
        """The next one begins from the first name."""
        self._pages = None
        self._due = 0.0

    def pages(self, begun: Callable[[], Iterator[list[Found]]], complete: bool, always: bool) -> Iterator[list[Found]]:
        """Pages of this look. ``complete``: all there are; ``always``: it does not rest."""
        now = self._clock.monotonic()
        if self._pages is None:
            if now < self._due:
                return
            self._pages, self._taken, self.finds = begun(), 0.0, False
        began = now
        while complete or now - began < SWEEP_SECONDS:
            try:
                page = next(self._pages, None)
            except BaseException:
                self._pages = None  # what has raised is at its end
                raise
            now = self._clock.monotonic()
            if page is None:
                self._pages = None
                self._taken += now - began
                self._rest = _LEAST_REST if self.finds else min(2 * self._rest, _MOST_REST)
                self._due = 0.0 if always else now + min(self._rest * self._taken, _LONGEST_REST)
                return
            yield page
        self._taken += now - began


def _gathered(pages: Iterable[list[Found]]) -> Iterator[list[Found]]:
    """Lists of at most some ``MOST`` objects, none of them empty."""
    held: list[Found] = []
    for page in pages:
        held += page
        if len(held) >= MOST:
            yield held
            held = []
    if held:
        yield held
