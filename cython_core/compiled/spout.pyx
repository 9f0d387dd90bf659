"""Spouts whose `next_tuple` is a C method of a user's Cython class; the pair of ``bolt``, and all that it says holds.

Threading law: as the executor.
"""

cimport cython
from cpython.object cimport PyObject

from cython_core.routing.output_collector cimport try_spout_emit
from cython_core.routing.component_base cimport SpoutBase

from cython_core.arrow.row_error import coded


cdef extern from "Python.h":
    void ps_incref "Py_INCREF"(PyObject *)
    PyObject *ps_false "Py_False"


@cython.auto_pickle(True)
cdef class CompiledSpout(SpoutBase):
    """What compiled spouts inherit, beside ``Spout`` or ``PartitionedSpout``. Define ``cdef int next_emit(self)``."""

    def next_tuple(self):
        """Calls ``next_emit``; the engine does without this.

        Returns:
            bool | None: False at the end of the range.
        """
        return False if self.next_emit() == END else None

    cdef int next_emit(self) except -1:
        raise coded(
            NotImplementedError,
            "PYSTORM_INVALID_COMPONENT",
            f"{type(self).__name__} must define cdef int next_emit(self) except -1",
        )

    cdef int emit_values(self, object values) except -1:
        if not try_spout_emit(<PyObject *>self, <PyObject *>values, NULL):
            SpoutBase.emit(self, values)
        return 0

    cdef int emit_with_id(self, object values, object tup_id) except -1:
        if not try_spout_emit(<PyObject *>self, <PyObject *>values, <PyObject *>tup_id):
            SpoutBase.emit(self, values, tup_id)
        return 0


cdef PyObject *call_next_tuple(PyObject *callable, PyObject **arguments, size_t count, PyObject *names) except NULL:
    cdef PyObject *answer = <PyObject *>None
    if (<CompiledSpout>callable).next_emit() == END:
        answer = ps_false
    ps_incref(answer)
    return answer
