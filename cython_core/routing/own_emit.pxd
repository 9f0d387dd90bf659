from cpython.object cimport PyObject


# Takes a plain emit: 1 where that is what it was, 0 where the general `emit` has to look.
ctypedef int (*plain_emit_t)(PyObject *component, PyObject *values, PyObject *tup_id) except -1


cdef int register_base(object base, bint is_bolt, plain_emit_t plain) except -1
cdef bint is_own_emit(object bound, bint is_bolt)
cdef object give_own_emit(object cls, bint is_bolt)
cdef int take_own_emit(object cls, bint is_bolt) except -1
