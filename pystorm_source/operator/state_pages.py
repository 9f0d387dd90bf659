"""The states of a bucket's keys in pages: many keys in one value of Spark's state store.

::

    key ──► stable hash ──► number of a page ──► its value: mark of the fields' types; Arrow batch, a row for each key

A get or a put of Spark's store is a round trip between Python and the JVM, which costs as much as a hundred keys in
Arrow. A run reads the pages of the keys that it touches, each once, and writes those that it has changed, each once.

The number of pages grows by linear hashing: one more page takes over half of the keys of one other. So growing rewrites
two pages and not all of them, and nothing but the number of pages says where a key is. It never shrinks; a page whose
last key is removed is removed, too.

Threading law: several tasks of a bolt may call ``get`` at once; all else runs in one thread, when they are done.
"""

import zlib
from collections.abc import Sequence
from threading import Lock
from typing import Any, NamedTuple

import pyarrow as pa

from cython_core.arrow.batch_rows import BatchRows
from cython_core.arrow.row_batch import RowBatchBuilder, RowSink
from cython_core.states.states_base import page_of, part_of_key
from pystorm_source.api.key_state import Key
from pystorm_source.errors import OptionError
from pystorm_source.types.arrow import concatenated, ddl_of

KEYS_OF_PAGE = 128
"""Fewer: more round trips if many keys are touched. More: a single touched key reads and writes more. With 256, a key
costs 5.8 us instead of 8.8 if all are touched, but a single one writes 7.1 KB instead of 3.6."""

BYTES_OF_PAGE = 32_768
"""So that states of many bytes have fewer keys in a page, and a touched one does not rewrite much."""

# Arrow's buffers behind it are read as they lie, and begin at multiples of 8 bytes.
_MARK_BYTES = 8

States = dict[Key, tuple[Any, ...]]


class Size(NamedTuple):
    """How many pages a bucket has, and how many keys and bytes they hold."""

    pages: int = 1
    keys: int = 0
    bytes: int = 0

    def wanted(self) -> int:
        """The number of pages that it should have."""
        wanted = max(self.keys // KEYS_OF_PAGE, self.bytes // BYTES_OF_PAGE)
        return max(self.pages, min(wanted, self.keys))

    def split_next(self) -> int:
        """The page that gives keys to the next new one."""
        return self.pages - (1 << (self.pages.bit_length() - 1))


class PageForm:
    """Pages as bytes. ``keys``, ``states``: the types of the columns of keys and of their states."""

    def __init__(self, keys: Sequence[pa.DataType], states: Sequence[pa.DataType]):
        self._width = len(keys)
        self._has_floats = any(map(pa.types.is_floating, keys))
        # By place: a field of the key may be called like one of the state.
        self.schema = pa.schema([(str(place), kind) for place, kind in enumerate([*keys, *states])])
        # Nothing else in a page says what its columns are, and other ones would be read as wrong values.
        types = ", ".join(ddl_of(column.type) for column in self.schema).replace(" not null", "")
        self._mark = zlib.crc32(types.encode()).to_bytes(_MARK_BYTES, "little")
        self._rows = RowBatchBuilder(self.schema)
        self._sink = RowSink(self._rows, range(len(self.schema)))

    def batch(self, page: bytes) -> pa.RecordBatch:
        """The columns of a page. Raises OptionError if they are other ones than this bolt's."""
        body = memoryview(page)
        if body[:_MARK_BYTES] != self._mark:
            raise OptionError(
                "the checkpoint has states of other fields: give the bolt its former state_fields and key, or the "
                f"query a new checkpointLocation. Given: {', '.join(map(str, self.schema.types))}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        return pa.ipc.read_record_batch(pa.py_buffer(body[_MARK_BYTES:]), self.schema)

    def read(self, page: bytes) -> States:
        """Key → state. Raises as ``batch``."""
        batch = self.batch(page)
        width, count = self._width, batch.num_rows
        rows = BatchRows(batch).rows(0, count)
        if self._has_floats:
            return {tuple(map(part_of_key, row[:width])): row[width:] for row in rows}
        return {row[:width]: row[width:] for row in rows}

    def written(self, states: States) -> bytes:
        """The page of these states."""
        for key, values in states.items():
            self._sink.append_row(key + values)
        self._rows.seal()
        batches, self._rows.done = self._rows.done, []
        return self._mark + concatenated(batches).serialize().to_pybytes()


class _Page:
    """``size``: its bytes in the store, 0 if it is not there. ``body``: its bytes after the next flush."""

    __slots__ = ("body", "is_changed", "size", "states", "was_stored")

    def __init__(self, states: States, size: int):
        self.states = states
        self.size = size
        self.was_stored = size > 0
        self.is_changed = False
        self.body: bytes | None = None

    def changed(self) -> States:
        self.is_changed, self.body = True, None
        return self.states


class StatePages:
    """The states of a bucket in one run. ``store``: Spark's map of the pages, by number; ``size``: as the last
    ``flush`` returned it; ``lock``: for the map's connection."""

    def __init__(self, form: PageForm, store: Any, size: Size, lock: Lock):
        self._form = form
        self._store = store
        self._lock = lock
        self.size = size
        self._read: dict[int, _Page] = {}

    def get(self, key: Key) -> tuple[Any, ...] | None:
        """As ``StateStore``."""
        return self._page(page_of(key, self.size.pages)).states.get(key)

    def put(self, key: Key, values: tuple[Any, ...]) -> None:
        """As ``StateStore``."""
        states = self._page(page_of(key, self.size.pages)).changed()
        if key not in states:
            self.size = self.size._replace(keys=self.size.keys + 1)
        states[key] = values

    def remove(self, key: Key) -> None:
        """As ``StateStore``."""
        del self._page(page_of(key, self.size.pages)).changed()[key]
        self.size = self.size._replace(keys=self.size.keys - 1)

    def flush(self) -> Size:
        """Writes the pages that have changed, and returns the size to keep."""
        while True:
            is_settled = not self._grow()
            self._encode()
            if is_settled and self.size.wanted() == self.size.pages:
                break
        for number, page in self._read.items():
            if not page.is_changed:
                continue
            if page.body:
                self._store.updateValue((number,), (page.body, None, None))
            elif page.was_stored:
                self._store.removeKey((number,))
        return self.size

    def _page(self, number: int) -> _Page:
        page = self._read.get(number)
        return self._stored(number) if page is None else page

    def _stored(self, number: int) -> _Page:
        with self._lock:
            page = self._read.get(number)  # another thread may just have read it
            if page is None:
                stored = self._store.getValue((number,))
                page = _Page({}, 0) if stored is None else _Page(self._form.read(stored[0]), len(stored[0]))
                self._read[number] = page
        return page

    def _grow(self) -> bool:
        """Splits pages until they are as many as they should be. Returns whether it has."""
        wanted = self.size.wanted()
        has_grown = wanted > self.size.pages
        while self.size.pages < wanted:
            old = self._page(self.size.split_next()).changed()
            number = self.size.pages
            self.size = self.size._replace(pages=number + 1)
            new = self._read[number] = _Page({}, 0)
            moved = [key for key in old if page_of(key, number + 1) == number]
            new.changed().update((key, old.pop(key)) for key in moved)
        return has_grown

    def _encode(self) -> None:
        for page in self._read.values():
            if page.is_changed and page.body is None:
                page.body = self._form.written(page.states) if page.states else b""
                self.size = self.size._replace(bytes=self.size.bytes + len(page.body) - page.size)
                page.size = len(page.body)
