"""The base of compiled spouts: what a user's Cython module cimports. docs/COMPILED_BOLTS.md."""

from cpython.object cimport PyObject

from cython_core.routing.component_base cimport SpoutBase


cdef extern from "cython_core/compiled/abi.h":
    pass


cdef enum NextTuple:
    MORE = 0    # there may be more: what `next_tuple` says by None
    END = 1     # the range is at its end: what it says by False


cdef class CompiledSpout(SpoutBase):
    # A subclass defines it: emits a tuple or nothing, as `next_tuple`. MORE or END, or an exception is set.
    cdef int next_emit(self) except -1
    # `emit(values)` of the default stream.
    cdef int emit_values(self, object values) except -1
    # `emit(values, tup_id)`: of a partitioned spout the tuple's offset, of others the message id.
    cdef int emit_with_id(self, object values, object tup_id) except -1


# The executor's: calls `next_emit` as the Python function of a method is called.
cdef PyObject *call_next_tuple(PyObject *callable, PyObject **arguments, size_t count, PyObject *names) except NULL
