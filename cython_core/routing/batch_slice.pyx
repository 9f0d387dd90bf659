"""Rows of a record batch on their way to a bolt, in the form that the bolt asks for.

    emit_batch(batch) ──► BatchSlice ──split by the grouping──► BatchSlice: places in the same batch ──► receive queue
                                                                 │ a bolt of rows: tuples of values, as it reads them
                                                                 │ its process_many: columns of values
                                                                 │ a bolt of batches: the batch, or what `take` gives

Slices share the memory of the batch, and the look-up of its buffers. Nothing is converted before a bolt asks for it,
and then once for all that share the slice.

Threading law: with the interpreter's lock held.
"""

cimport cython
from cpython cimport array

from cython_core.arrow.batch_rows cimport BatchRows
from cython_core.tuples.tuple cimport ColumnSlice, TupleBatch, columns_slice

import pyarrow as pa

from cython_core.arrow.batch_rows import batch_at
from cython_core.arrow.row_error import RowError, shown

cdef array.array LONG_LONGS = array.array("q")


cdef bint in_order(array.array places) except -1:
    """Whether they are 0, 1, 2, … A custom grouping may send a row twice to a task, and another one elsewhere."""
    cdef Py_ssize_t i
    for i in range(len(places)):
        if places.data.as_ints[i] != i:
            return False
    return True


cdef BatchSlice slice_of(object batch):
    """All rows of a ``pyarrow.RecordBatch``."""
    cdef BatchSlice rows = BatchSlice.__new__(BatchSlice)
    rows.reader = BatchRows(batch)
    rows.count = batch.num_rows
    rows.weight = rows.reader.weight()
    rows.whole = batch
    return rows


@cython.final
@cython.auto_pickle(True)
cdef class BatchSlice(TupleBatch):
    """Rows of a batch: ``count`` from one on, or those at some places."""

    cdef BatchSlice part(self, Py_ssize_t start, Py_ssize_t count):
        """Rows of a slice that has no places."""
        cdef BatchSlice rows
        if start == 0 and count == self.count:
            return self
        rows = BatchSlice.__new__(BatchSlice)
        rows.reader = self.reader
        rows.of_spout = self.of_spout
        rows.start = self.start + start
        rows.count = count
        rows.weight = self.weight * count // max(self.count, 1)
        return rows

    cdef BatchSlice at(self, array.array places):
        """The rows at these places of the slice, which it takes over; each of them once: the slice itself."""
        cdef BatchSlice rows
        cdef Py_ssize_t i, count = len(places)
        if count == self.count and in_order(places):
            return self
        for i in range(count):
            places.data.as_ints[i] = (
                <int>self.start + places.data.as_ints[i]
                if self.places is None
                else self.places.data.as_ints[places.data.as_ints[i]]
            )
        rows = BatchSlice.__new__(BatchSlice)
        rows.reader = self.reader
        rows.of_spout = self.of_spout
        rows.places = places
        rows.count = count
        rows.weight = self.weight * count // max(self.count, 1)
        return rows

    cdef Py_ssize_t place(self, Py_ssize_t i) noexcept:
        """Of row i in the reader's batch."""
        return self.start + i if self.places is None else self.places.data.as_ints[i]

    cdef BatchSlice losing(self, list mask, object cause):
        """The same rows, of which a bolt has failed some for this cause, besides those that it has failed before."""
        cdef BatchSlice rows = BatchSlice.__new__(BatchSlice)
        cdef Py_ssize_t i
        rows.reader = self.reader
        rows.of_spout = self.of_spout
        rows.start = self.start
        rows.places = self.places
        rows.count = self.count
        rows.weight = self.weight
        rows.whole = self.whole
        rows.acked = self.acked
        rows.lost = {self.place(i): cause for i in range(self.count) if mask[i]}
        if self.lost is not None:
            rows.lost.update(self.lost)  # the first verdict of a row counts
        return rows

    cdef tuple split(self, object failed, bint all_rows):
        """(Those of its rows that a bolt has failed, the others), as slices or None. ``failed``: the values of the
        tuple that the bolt had; ``all_rows``: it has failed all of them if it named none. (None, None) if it cannot be
        said, as of rows that a bolt has made of these."""
        cdef Py_ssize_t i
        cdef array.array ours = array.array("i"), others = array.array("i")
        if not isinstance(failed, BatchSlice) or (<BatchSlice>failed).reader is not self.reader:
            return None, None
        lost = (<BatchSlice>failed).lost
        if lost is None and not all_rows:
            return None, None
        if lost is None:
            lost = {(<BatchSlice>failed).place(i) for i in range((<BatchSlice>failed).count)}
        for i in range(self.count):
            if self.place(i) in lost:
                ours.append(i)
            else:
                others.append(i)
        return self.at(ours) if len(ours) > 0 else None, self.at(others) if len(others) > 0 else None

    cdef BatchSlice row(self, Py_ssize_t i):
        """Row i alone."""
        return self.at(array.array("i", [i]))

    cdef Py_ssize_t find(self, Py_ssize_t place) noexcept:
        """The row at this place of the reader's batch, or -1."""
        cdef Py_ssize_t i
        if self.places is None:
            return place - self.start if 0 <= place - self.start < self.count else -1
        for i in range(self.count):
            if self.place(i) == place:
                return i
        return -1

    def __len__(self):
        return self.count

    def __iter__(self):
        """The rows, as messages show them."""
        return iter(self.between(0, self.count))

    @property
    def names(self):
        """Of the batch's columns."""
        return self.reader.batch.schema.names

    def __repr__(self):
        return f"a batch of {self.count} rows"

    cdef list between(self, Py_ssize_t start, Py_ssize_t end, object only=None):
        """Rows ``start`` to ``end`` as tuples of Python values. ``only``: as of ``BatchRows``."""
        if only is None and self.shared:
            if self.kept is None:
                self.kept = self.read(0, self.count, None)
            return self.kept[start:end]
        return self.read(start, end, only)

    def read(self, Py_ssize_t start, Py_ssize_t end, only):
        """As ``between``, from Arrow's memory."""
        if self.places is not None:
            return self.reader.between(start, end, self.places.data.as_ints, only)
        return self.reader.between(self.start + start, self.start + end, NULL, only)

    cdef ColumnSlice columns(self, tuple names, Py_ssize_t start, Py_ssize_t count):
        """``count`` rows by columns; ``names``: of the fields. Raises what Arrow raises for a value that cannot be
        read."""
        cdef ColumnSlice made
        cdef Py_ssize_t i
        cdef Py_ssize_t first = 0 if self.shared else start
        cdef Py_ssize_t rows = self.count if self.shared else count
        cdef tuple columns = self.kept_columns
        if columns is None and self.places is not None:
            columns = self.reader.by_column(first, first + rows, self.places.data.as_ints)
        elif columns is None:
            columns = self.reader.by_column(self.start + first, self.start + first + rows)
        if self.shared:
            self.kept_columns = columns
        made = columns_slice(names, columns, count)
        made.start = start - first
        if self.of_spout:
            made.offsets = array.clone(LONG_LONGS, rows, False)
            for i in range(rows):
                made.offsets.data.as_longlongs[i] = offset_of_place(self.place(first + i))
        return made

    def shown(self, Py_ssize_t i):
        """Row i as a message or a dead letter shows it: a value that cannot be read is text that says so."""
        return self.reader.shown(self.place(i))[0]

    cdef object row_or_error(self, Py_ssize_t i, str label):
        """Row i as a tuple of Python values, or the RowError that names what cannot be read of it."""
        row, field, cause = self.reader.shown(self.place(i))
        if cause is None:
            return row
        error = RowError(
            f"field {field.name!r} ({field.type}) of {label} cannot be read as a value of Python's, in row "
            f"{self.place(i)} of its batch: {type(cause).__name__}: {cause}. Cast the column before bolts of rows get "
            f"it, or take it in an ArrowBolt. Given: {shown(row)}",
            field.name, None, row,
        )
        error.__cause__ = cause
        return error

    cdef object batch(self):
        """The rows as a ``pyarrow.RecordBatch``; without a copy if they lie one behind the other."""
        if self.whole is None and self.places is None:
            self.whole = self.reader.batch.slice(self.start, self.count)
        elif self.whole is None:
            places = pa.Array.from_buffers(pa.int32(), self.count, [None, pa.py_buffer(self.places)])
            self.whole = batch_at(self.reader.batch, places)
        return self.whole
