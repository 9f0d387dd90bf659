"""Rows on their way to ``process_many``, as columns of Python values: one tuple carries them.

    emit_many(words, counts) ──split by the grouping──► ColumnSlice ──► receive queue ──► process_many(tups)
    emit_batch(batch) ────────► BatchSlice ──► receive queue ──► ColumnSlice ─────────►   │
                                                                        tups.column("word"): the values, as they are
                                                                        for tup in tups:     a Tuple for each row

They are made tuples when the bolt asks for tuples, and never if it asks for columns only. Bytes of an ``emit_many`` are
not known, so that it counts as none; rows of it count in the queue.

Threading law: with the interpreter's lock held.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport ack_edge, ps_acker_add, ps_acker_edge, ps_acker_take


cdef ColumnSlice columns_slice(tuple names, tuple columns, Py_ssize_t rows):
    """All rows of these columns. ``columns``: a tuple of so many values for each of ``names``."""
    cdef ColumnSlice made = ColumnSlice.__new__(ColumnSlice)
    made.names = names
    made.columns = columns
    made.count = rows
    return made


@cython.final
@cython.auto_pickle(True)
cdef class ColumnSlice(TupleBatch):
    """``count`` rows of some columns, from one on."""

    cdef ColumnSlice part(self, Py_ssize_t start, Py_ssize_t count):
        """So many rows of it."""
        cdef ColumnSlice rows = columns_slice(self.names, self.columns, count)
        rows.start = self.start + start
        rows.offsets = self.offsets
        return rows

    cdef long long offset_of(self, Tuple tup, Py_ssize_t i) noexcept:
        """Of row i of the columns; ``tup``: what carries them."""
        return tup.offset if self.offsets is None else self.offsets.data.as_longlongs[i]

    cdef list column(self, Py_ssize_t field):
        """The values of a field."""
        return list((<tuple>self.columns[field])[self.start : self.start + self.count])

    cdef list between(self, Py_ssize_t start, Py_ssize_t end, object only=None):
        """Rows ``start`` to ``end`` as tuples of values. ``only``: without effect, as all values are there."""
        start, end = self.start + start, self.start + end
        return list(zip(*[column[start:end] for column in self.columns]))

    def shown(self, Py_ssize_t i):
        """Row i, for a message."""
        return self.between(i, i + 1)[0]

    def __len__(self):
        return self.count

    def __iter__(self):
        """The rows, as messages show them."""
        return iter(self.between(0, self.count))

    def __repr__(self):
        return f"{self.count} rows"


cdef int append_rows(list rows, Tuple tup) except -1:
    """Appends a tuple for each row that ``tup`` carries. They take its place in its trees, and have its verdict.

    Order: the edges of all rows before that of ``tup`` goes, or the tree might be complete meanwhile. Their sum (XOR)
    is added at once: a tree of a large batch would cost as much as it has rows, for each of them.
    """
    cdef ColumnSlice batch = <ColumnSlice>tup.payload
    cdef TupleSource source = tup.source
    cdef bint tracked = tup.verdict == OPEN and (tup.root is not NULL or tup.roots is not None)
    cdef Py_ssize_t fields = PyTuple_GET_SIZE(batch.columns)
    cdef PyObject **room = <PyObject **>PyMem_Malloc(max(1, fields) * sizeof(PyObject *))
    cdef uint64_t edges = 0
    cdef Tuple row
    cdef Py_ssize_t i, k
    if room is NULL:
        raise MemoryError("no memory for the values of a row")
    try:
        for i in range(batch.start, batch.start + batch.count):
            for k in range(fields):
                room[k] = PyTuple_GET_ITEM(<object>PyTuple_GET_ITEM(batch.columns, k), i)
            if source.values_class is not None:  # hot
                row = new_tuple(source, values_of(room, fields, source.values_class), batch.offset_of(tup, i))
            else:
                row = new_tuple(source, tuple([column[i] for column in batch.columns]), batch.offset_of(tup, i))
            row.verdict = tup.verdict
            if tracked:  # hot
                row.root, row.attempt, row.roots = tup.root, tup.attempt, tup.roots
                row.edge = ps_acker_edge(&source.acker.acker)
                edges ^= row.edge
            rows.append(row)
    finally:
        PyMem_Free(room)
    if tracked and tup.root is not NULL:
        ps_acker_add(tup.root, tup.attempt, edges)
        ps_acker_take(&source.acker.acker, tup.root, tup.attempt)  # the bolt has them, none waits
        ack_edge(&source.acker.acker, tup.root, tup.attempt, tup.edge)
    elif tracked:
        tup.roots.add_edge(edges)
        tup.roots.take()
        tup.roots.ack_edge(tup.edge)
    return 0
