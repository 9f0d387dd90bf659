"""The base of compiled bolts: what a user's Cython module cimports. docs/COMPILED_BOLTS.md."""

from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE

from cython_core.routing.component_base cimport BoltBase
from cython_core.tuples.tuple cimport Tuple


cdef extern from "cython_core/compiled/abi.h":
    pass


cdef class CompiledBolt(BoltBase):
    # A subclass defines it. Called for each tuple without Python on the way; 0, or an exception is set.
    cdef int process_tuple(self, Tuple tup) except -1
    # `emit(values)` of the default stream, anchored as that: 0, or it raises.
    cdef int emit_values(self, object values) except -1
    cdef int emit1(self, object value) except -1
    cdef int emit2(self, object first, object second) except -1
    # `emit(values, stream=stream)`.
    cdef int emit_to(self, str stream, object values) except -1
    # `ack(tup)` and `fail(tup)`.
    cdef int ack_tuple(self, Tuple tup) except -1
    cdef int fail_tuple(self, Tuple tup) except -1


# The executor's: calls `process_tuple` as the Python function of a method is called.
cdef PyObject *call_process(PyObject *callable, PyObject **arguments, size_t count, PyObject *names) except NULL


cdef inline object field(Tuple tup, Py_ssize_t index):
    """A value of the tuple, by its place in the stream's fields. Raises IndexError."""
    if not 0 <= index < PyTuple_GET_SIZE(tup.payload):
        raise IndexError(f"the tuple has {PyTuple_GET_SIZE(tup.payload)} values. Given: {index}")
    return <object>PyTuple_GET_ITEM(tup.payload, index)
