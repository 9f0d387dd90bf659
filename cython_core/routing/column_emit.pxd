from cython_core.acking.acker cimport anchor_t
from cython_core.routing.stream_router cimport StreamRouter


cdef tuple columns_of(tuple given)
cdef int check_fields(StreamRouter router, tuple columns) except -1
cdef Py_ssize_t length_of(tuple columns, tuple ids) except -1
cdef int emit_one_by_one(object component, tuple columns, tuple ids, dict named) except -1
cdef int refill(list row, tuple columns, Py_ssize_t number) except -1
cdef int send_columns(StreamRouter router, tuple columns, Py_ssize_t rows, const anchor_t *anchor,
                      unsigned long long *emits) except -1
