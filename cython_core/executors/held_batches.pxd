cimport cython

from cython_core.tuples.tuple cimport Tuple


@cython.final
cdef class HeldBatches:
    cdef object component
    cdef list held          # (batch, its tuples), oldest first
    cdef list left(self)


cdef inline bint comes_again(Tuple tup) noexcept:
    # Whether it is of a tree that was emitted before.
    cdef Py_ssize_t i
    if tup.root is not NULL:
        return tup.root.emits > 1
    if tup.roots is not None:
        for i in range(tup.roots.count):
            if tup.roots.roots[i].emits > 1:
                return True
    return False
