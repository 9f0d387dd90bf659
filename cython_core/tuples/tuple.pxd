"""Declares what tuple.pyx and its parts define: tuple.pyx, column_slice.pxi."""

cimport cython
from cpython cimport array
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport (
    Acker, Roots, anchor_t, ps_acker_add, ps_acker_edge, ps_acker_take, ps_acker_wait, ps_root,
)


# tuple.pyx

cdef extern from "cython_core/primitives/mix.h" nogil:
    uint64_t ps_mix64(uint64_t x)


cdef extern from "Python.h":
    Py_ssize_t ps_refcount "Py_REFCNT"(PyObject *)
    void ps_decref_tuple "Py_DECREF"(PyObject *)


cdef enum:
    POOL_SIZE = 1024


cdef enum Verdict:
    OPEN = 0
    ACKED = 1
    FAILED = 2


cdef class TupleBatch:
    # What a tuple carries instead of values, if it stands for many rows.
    cdef readonly Py_ssize_t count
    cdef readonly Py_ssize_t weight     # in bytes, about
    cdef list between(self, Py_ssize_t start, Py_ssize_t end, object only=*)


@cython.final
cdef class TupleSource:
    # Where tuples come from: one per (producer task, stream), shared by all its tuples.
    cdef readonly str component
    cdef readonly str stream
    cdef readonly int task
    cdef readonly tuple fields
    # The named tuple class of `.values`, or None where the field names are no identifiers.
    cdef readonly object values_class
    cdef readonly Acker acker   # of the worker, None of tuples that are in none
    # Component, stream and task of a tuple made by hand, where they are no str, str and int; None of others.
    cdef tuple odd


@cython.final
cdef class Tuple:
    # Order: first. `values`, to Python: a tuple, the named one of the source's class when the bolt gets it.
    cdef object payload
    cdef TupleSource source
    cdef long long offset       # of the spout tuple that it stems from; -1: none
    cdef object key             # the id; None until it is read
    # The tree that it is an edge of: its root's slot, kept by the source's acker, and which attempt of it; NULL: none.
    cdef ps_root *root
    cdef uint64_t attempt
    cdef uint64_t edge          # its id
    cdef Roots roots            # instead of the one root: several; else None
    cdef int verdict            # a Verdict; the first one wins
    # Order: beside `verdict`, so that one store clears both.
    cdef int gathered           # a batching bolt keeps it until the engine processes its batch: it waits as if queued


# Tuples without any other reference, kept to be given out again: the pool owns one reference to each. Making a tuple
# anew costs four times as many instructions as taking one from here.
cdef PyObject *pool[POOL_SIZE]
cdef int pooled


# Ids that were asked for → address of the tuple, which the table does not own.
cdef dict named
cdef Tuple tuple_named(object key)
cdef int forget_name(PyObject *tup, object key) except -1


cdef extern from "cython_core/tuples/plain_values.h":
    bint ps_plain_values_rename(PyObject *payload, PyObject *values_class)


cdef tuple tree_ids(Tuple tup)
cdef object named_values(object values, object values_class)
cdef object values_of(PyObject **items, Py_ssize_t n, object values_class)
cdef int give_names(Tuple tup) except -1


cdef inline int name_values(Tuple tup) except -1:
    # Order: before user code gets the tuple. 1 if it stands for many rows: user code gets these.
    if type(tup.payload) is tup.source.values_class:  # hot
        return 0
    if ps_plain_values_rename(<PyObject *>tup.payload, <PyObject *>tup.source.values_class):  # hot
        return 0
    return give_names(tup)


cdef inline Tuple new_tuple(TupleSource source, object payload, long long offset):
    # An edge of no tree.
    global pooled
    cdef Tuple tup
    if pooled > 0:  # hot
        pooled -= 1  # hot
        tup = <Tuple>pool[pooled]
        ps_decref_tuple(pool[pooled])  # hot
    else:
        tup = Tuple.__new__(Tuple)
    if tup.source is not source:  # hot
        tup.source = source
    tup.payload = payload
    tup.offset = offset
    return tup


cdef inline Tuple new_edge(TupleSource source, object payload, const anchor_t *anchor):
    # A tuple of the anchor's trees.
    cdef Tuple tup = new_tuple(source, payload, anchor.offset)
    if anchor.root is not NULL:  # hot
        tup.root = anchor.root  # hot
        tup.attempt = anchor.attempt  # hot
        tup.edge = ps_acker_edge(&source.acker.acker)  # hot
        ps_acker_add(anchor.root, anchor.attempt, tup.edge)  # hot
    elif anchor.roots is not NULL:
        tup.roots = <Roots>anchor.roots
        tup.edge = ps_acker_edge(&source.acker.acker)
        tup.roots.add_edge(tup.edge)
    return tup


cdef inline int add_edge(Tuple tup, uint64_t edge) except -1:
    # To the trees of the tuple.
    if tup.root is not NULL:
        ps_acker_add(tup.root, tup.attempt, edge)
    elif tup.roots is not None:
        tup.roots.add_edge(edge)
    return 0


cdef inline bint take(Tuple tup) noexcept:
    # Its bolt takes it out of the queue. 0 if it is in trees and all of them have failed: it is not to be processed.
    if tup.root is not NULL:  # hot
        return ps_acker_take(&tup.source.acker.acker, tup.root, tup.attempt)  # hot
    return 1 if tup.roots is None else tup.roots.take()


cdef inline int gather(Tuple tup) noexcept:
    # It waits in a batch that the engine will process.
    if tup.gathered:
        return 0
    tup.gathered = 1
    if tup.root is not NULL:
        ps_acker_wait(tup.root, tup.attempt)
    elif tup.roots is not None:
        tup.roots.wait()
    return 0


cdef inline int take_gathered(Tuple tup) noexcept:
    # Out of its batch.
    if tup.gathered:
        tup.gathered = 0
        take(tup)
    return 0


cdef inline bint is_lost(Tuple tup) except -1:
    # Whether it has no verdict and a tree of it has failed: nothing that is made of it counts.
    if tup.verdict != OPEN:
        return False
    if tup.root is not NULL:
        return tup.root.attempt != tup.attempt
    return tup.roots is not None and tup.roots.is_lost()


cpdef bint is_final_tick(object tup) except -1


cdef inline uint64_t ring_edge(uint64_t edge, Py_ssize_t reader) noexcept:
    # The edge of that reader's copy of a tuple.
    return ps_mix64(edge + <uint64_t>(reader + 1) * <uint64_t>0x9E3779B97F4A7C15)


cdef inline void recycle(PyObject *owned) noexcept:
    # Gives up the caller's reference. While the executor's `current` still holds the tuple, two references mean that
    # it was not kept elsewhere; the pool then takes over the caller's. Its values go at once: they may be large.
    # Order: the values go last, when this function returns. Their end may run code that emits, hence takes
    # from the pool.
    global pooled
    cdef object _payload, _key, _roots
    if ps_refcount(owned) == 2:  # hot
        _payload = (<Tuple>owned).payload
        _key = (<Tuple>owned).key
        (<Tuple>owned).payload = ()
        if _key is not None:  # hot
            (<Tuple>owned).key = None
            forget_name(owned, _key)
        take_gathered(<Tuple>owned)  # its bolt has thrown its batch away
        (<Tuple>owned).root = NULL  # hot
        if (<Tuple>owned).roots is not None:  # hot
            _roots = (<Tuple>owned).roots
            (<Tuple>owned).roots = None
        (<Tuple>owned).verdict = OPEN  # hot
        (<Tuple>owned).gathered = 0  # hot
        if pooled < POOL_SIZE:  # hot
            pool[pooled] = owned  # hot
            pooled += 1  # hot
            return
    ps_decref_tuple(owned)


# column_slice.pxi

@cython.final
cdef class ColumnSlice(TupleBatch):
    cdef readonly tuple names   # of the fields
    cdef tuple columns          # of each field a tuple of values
    cdef Py_ssize_t start       # the first row in them
    cdef array.array offsets    # of each row, type code "q"; None: that of the tuple that carries them
    cdef long long offset_of(self, Tuple tup, Py_ssize_t i) noexcept
    cdef ColumnSlice part(self, Py_ssize_t start, Py_ssize_t count)
    cdef list column(self, Py_ssize_t field)


cdef ColumnSlice columns_slice(tuple names, tuple columns, Py_ssize_t rows)
cdef int append_rows(list rows, Tuple tup) except -1
