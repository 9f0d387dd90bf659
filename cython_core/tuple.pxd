cimport cython
from cpython.object cimport PyObject

from cython_core.tuple_tree cimport adopt


cdef extern from "Python.h":
    Py_ssize_t ps_refcount "Py_REFCNT"(PyObject *)
    void ps_decref_tuple "Py_DECREF"(PyObject *)


cdef enum:
    POOL_SIZE = 1024


cdef enum Verdict:
    OPEN = 0
    ACKED = 1
    FAILED = 2


@cython.final
cdef class TupleSource:
    # Where tuples come from: one per (producer task, stream), shared by all its tuples.
    cdef readonly str component
    cdef readonly str stream
    cdef readonly int task
    cdef readonly tuple fields
    # The named tuple class of `.values`, or None where the field names are no identifiers.
    cdef readonly object values_class
    # Component, stream and task of a tuple made by hand, where they are no str, str and int; None of others.
    cdef tuple odd


@cython.final
cdef class Tuple:
    # Order: first. `values`, to Python: a tuple, the named one of the source's class when the bolt gets it.
    cdef object payload
    cdef TupleSource source
    cdef long long offset       # of the spout tuple that it stems from; -1: none
    cdef object key             # the id; None until somebody asks for it
    cdef object trees           # that it is an edge of: None, a TupleTree, or a tuple of several
    cdef int verdict            # a Verdict; the first one wins


# Tuples that nobody refers to any more, kept to be given out again: the pool owns one reference to each. Making a tuple
# anew costs four times as many instructions as taking one from here.
cdef PyObject *pool[POOL_SIZE]
cdef int pooled


# Ids that were asked for → address of the tuple, which the table does not own.
cdef dict named
cdef Tuple tuple_named(object key)
cdef int forget_name(PyObject *tup, object key) except -1


cdef object named_values(object values, object values_class)
cdef int give_names(Tuple tup) except -1


cdef inline int name_values(Tuple tup) except -1:
    # Order: before user code gets the tuple.
    if type(tup.payload) is not tup.source.values_class and tup.source.values_class is not None:  # hot
        return give_names(tup)
    return 0


cdef inline Tuple new_tuple(TupleSource source, object payload, long long offset, object trees):
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
    if trees is not None:  # hot
        tup.trees = trees
        adopt(trees)
    return tup


cdef inline void give_up(PyObject *owned) noexcept:
    # Gives up the caller's reference. While the executor's `current` still holds the tuple, two references mean that
    # nobody else has kept it; the pool then takes over the caller's. Its values go at once: they may be large.
    # Order: the values go last, when this function returns. Their end may run code that emits, hence takes
    # from the pool.
    global pooled
    cdef object _payload, _key, _trees
    if ps_refcount(owned) == 2:  # hot
        _payload = (<Tuple>owned).payload
        _key = (<Tuple>owned).key
        (<Tuple>owned).payload = ()
        if _key is not None:  # hot
            (<Tuple>owned).key = None
            forget_name(owned, _key)
        if (<Tuple>owned).trees is not None:  # hot
            _trees = (<Tuple>owned).trees
            (<Tuple>owned).trees = None
        (<Tuple>owned).verdict = OPEN  # hot
        if pooled < POOL_SIZE:  # hot
            pool[pooled] = owned  # hot
            pooled += 1  # hot
            return
    ps_decref_tuple(owned)
