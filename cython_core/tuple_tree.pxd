cimport cython


@cython.final
cdef class TupleTree:
    # One spout tuple and all that was anchored to it and has no verdict yet.
    cdef readonly object key        # the message id that the spout gave to emit
    cdef readonly bint failed
    cdef bint settled
    cdef int generation             # 0; else how many verdicts told after the end of a slice it stems from
    cdef long outstanding           # edges without a verdict; one more while the spout's emit goes on
    cdef list settlements           # of the spout's task: where the tree goes, once, when it is settled


cdef int adopt_many(object trees) except -1
cdef int ack_edge(object trees) except -1
cdef int fail_edge(object trees) except -1
cdef int add_trees(dict found, object trees) except -1
cdef object united(dict found)


cdef inline int adopt(object trees) except -1:
    # A new edge of the tree, or of each of several.
    if type(trees) is TupleTree:
        (<TupleTree>trees).outstanding += 1
        return 0
    return adopt_many(trees)
