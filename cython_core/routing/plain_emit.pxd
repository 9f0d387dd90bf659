from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport ps_acker_edge, ps_root
from cython_core.routing.output_collector cimport OutputCollector
from cython_core.routing.spout_output_collector cimport SpoutOutputCollector, open_root
from cython_core.routing.stream_router cimport StreamRouter, transfer
from cython_core.tuples.tuple cimport Tuple, named_values, new_tuple


cdef extern from "Python.h":
    bint ps_is_tuple "PyTuple_Check"(PyObject *)
    bint ps_is_list "PyList_CheckExact"(PyObject *)
    Py_ssize_t ps_size "Py_SIZE"(PyObject *)


# Plain emits of a component: 1 where that is what it was, 0 where its general `emit` has to look.
cdef int try_spout_emit(PyObject *component, PyObject *values, PyObject *tup_id) except -1
cdef int try_bolt_emit(PyObject *component, PyObject *values, PyObject *none) except -1


cdef inline int send_rooted(PyObject *collector, PyObject *values, PyObject *tup_id) except -1:
    # A spout's plain emit with an id, where its stream goes straight to one task: 0 where it does not. Its one tuple is
    # the root's first edge. As `send_plain`, borrowed pointers.
    cdef PyObject *router = <PyObject *>(<OutputCollector>collector).default_router
    cdef object payload
    if router is <PyObject *>None or not (<StreamRouter>router).straight:  # hot
        return 0
    if ps_size(values) != (<StreamRouter>router).arity:  # hot
        return 0
    if ps_is_tuple(values):
        payload = <object>values
    elif ps_is_list(values):
        payload = named_values(<object>values, (<StreamRouter>router).source.values_class)
    else:
        return 0
    root_straight(<SpoutOutputCollector>collector, <StreamRouter>router, payload, tup_id)
    return 1


cdef inline int root_straight(SpoutOutputCollector collector, StreamRouter router, object payload,
                              PyObject *tup_id) except -1:
    cdef uint64_t edge = ps_acker_edge(&collector.acker.acker)
    cdef ps_root *root = open_root(collector, <PyObject *>payload, tup_id, <PyObject *>None, edge, 1)
    cdef Tuple tup = new_tuple(router.source, payload, collector.last_offset)
    tup.root = root
    tup.attempt = root.attempt
    tup.edge = edge
    root.waiting = 1
    router.emitted += 1
    router.transferred += 1
    collector.emits += 1
    collector.rooted += 1
    return transfer(router.pending, router.only, tup)
