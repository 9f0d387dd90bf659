"""Bolts whose `process` is a C method of a user's Cython class.

    cdef class SplitWords(CompiledBolt)    process_tuple, C fields                  (compiled by the user)
    class Split(SplitWords, Bolt)          outputs, config, initialize, ticks       (a Bolt like any other)

The executor finds that `process` of the component is the one below, and calls `process_tuple` in its place. All else is
as for every bolt, since the component is one: acks, failures, time-outs, counters. Emits go the way of plain emits;
one that is none (another thread, a unit test without a topology, a tuple that has its verdict) goes the general way.

Threading law: as the executor.
"""

cimport cython
from cpython.object cimport PyObject

from cython_core.acking.acker cimport anchor_t, no_anchor
from cython_core.routing.component_base cimport BoltBase
from cython_core.routing.output_collector cimport (
    BoltOutputCollector, OutputCollector, running, running_for, try_bolt_emit,
)
from cython_core.routing.stream_router cimport StreamRouter
from cython_core.tuples.tuple cimport Tuple, values_of

from cython_core.arrow.row_error import coded


cdef extern from "Python.h":
    void ps_incref "Py_INCREF"(PyObject *)


@cython.auto_pickle(True)
cdef class CompiledBolt(BoltBase):
    """What compiled bolts inherit, beside ``Bolt``. Define ``cdef int process_tuple(self, Tuple tup) except -1``."""

    def process(self, Tuple tup not None):
        """Calls ``process_tuple``; the engine does without this.

        Args:
            tup (Tuple): the tuple.
        """
        self.process_tuple(tup)

    cdef int process_tuple(self, Tuple tup) except -1:
        raise coded(
            NotImplementedError,
            "PYSTORM_INVALID_COMPONENT",
            f"{type(self).__name__} must define cdef int process_tuple(self, Tuple tup) except -1",
        )

    cdef int emit_values(self, object values) except -1:
        if not try_bolt_emit(<PyObject *>self, <PyObject *>values, NULL):
            BoltBase.emit(self, values)
        return 0

    cdef int emit1(self, object value) except -1:
        cdef PyObject *items = <PyObject *>value
        cdef object values = named(self, &items, 1)
        return self.emit_values((value,) if values is None else values)

    cdef int emit2(self, object first, object second) except -1:
        cdef PyObject *items[2]
        cdef object values
        items[0], items[1] = <PyObject *>first, <PyObject *>second
        values = named(self, items, 2)
        return self.emit_values((first, second) if values is None else values)

    cdef int emit_to(self, str stream, object values) except -1:
        cdef BoltOutputCollector collector = <BoltOutputCollector>running_for(self)
        cdef anchor_t anchor = no_anchor(-1)
        cdef object _alive
        if collector is None or collector.current is None:
            BoltBase.emit(self, values, stream)
            return 0
        _alive = collector.anchor_to_current(&anchor)
        return collector.send(values, stream, &anchor, None)

    cdef int ack_tuple(self, Tuple tup) except -1:
        cdef OutputCollector collector = running_for(self)
        if collector is None or tup is None or tup.key is not None:
            BoltBase.ack(self, tup)
            return 0
        return (<BoltOutputCollector>collector).ack(tup)

    cdef int fail_tuple(self, Tuple tup) except -1:
        cdef OutputCollector collector = running_for(self)
        if collector is None or tup is None or tup.key is not None:
            BoltBase.fail(self, tup)
            return 0
        return (<BoltOutputCollector>collector).fail(tup)


cdef inline object named(CompiledBolt bolt, PyObject **items, Py_ssize_t n):
    # Values as the receiver is to get them, made at once out of those that are kept; None where that is unknown.
    cdef StreamRouter router
    if running is None or running.instance is not bolt:  # hot
        return None
    router = running.default_router
    if router is None or router.arity != n or router.source.values_class is None:  # hot
        return None
    return values_of(items, n, router.source.values_class)


cdef PyObject *call_process(PyObject *callable, PyObject **arguments, size_t count, PyObject *names) except NULL:
    (<CompiledBolt>callable).process_tuple(<Tuple>arguments[1])
    ps_incref(<PyObject *>None)
    return <PyObject *>None
