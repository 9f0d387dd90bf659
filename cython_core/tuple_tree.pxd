cimport cython


@cython.final
cdef class TupleTree:
    # One spout tuple and all that was anchored to it and has no verdict yet.
    cdef readonly object key        # the message id that the spout gave to emit
    cdef readonly bint failed
    cdef bint settled
    cdef long outstanding           # edges without a verdict; one more while the spout's emit goes on
    cdef list settlements           # of the spout's task: where the tree goes, once, when it is settled


cdef int adopt_many(object trees) except -1
cdef int ack_edge(object trees) except -1
cdef int fail_edge(object trees) except -1
cdef object union_of(object trees, object others)


cdef inline int adopt(object trees) except -1:
    # A new edge of the tree, or of each of several.
    if type(trees) is TupleTree:
        (<TupleTree>trees).outstanding += 1
        return 0
    return adopt_many(trees)
