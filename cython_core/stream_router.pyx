"""Routing of emitted values to the tasks that subscribe to a stream.

    emit(values) ──► StreamRouter ─┬─ no subscriber, selected for output ──► RowView (an Arrow row)
                                   ├─ one subscribing task ───────────────► its batch
                                   └─ else: each Route's grouping chooses ─► a Tuple per chosen task ──► batches

Groupings follow Storm: shuffle is an exactly even round-robin, fields is ``hash mod n`` over the sorted target tasks
(with a hash that is stable across processes), global is the lowest task id, all is every task, none is uniform random
(seeded by the task id). Shuffle and none carry on from range to range: a replay gives the same tuples, by other ways
perhaps. Local-or-shuffle is shuffle: all targets are in this worker.

Threading law: producer's thread only.
"""

cimport cython
from cpython.list cimport PyList_AsTuple, PyList_CheckExact
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from cython_core.batch_inserter cimport BatchInserter, PendingEmits, insert
from cython_core.row_batch cimport RowView
from cython_core.stable_hash cimport stable_hash
from cython_core.tuple cimport Tuple, TupleSource, new_tuple


cdef extern from "mix.h" nogil:
    uint64_t ps_mix64(uint64_t x)


cdef dict KINDS = {
    "shuffle": GROUPING_SHUFFLE,
    "local_or_shuffle": GROUPING_SHUFFLE,
    "fields": GROUPING_FIELDS,
    "all": GROUPING_ALL,
    "global": GROUPING_GLOBAL,
    "none": GROUPING_NONE,
}


cdef inline int transfer(PendingEmits pending, BatchInserter inserter, Tuple tup) except -1:
    if pending.count == 0 and insert(inserter, tup):  # hot
        return 0  # hot
    return pending.push(inserter, tup)


@cython.final
cdef class Route:
    """``Route(grouping, inserters, positions, seed)``.

    ``grouping``: shuffle, local_or_shuffle, fields, all, global or none. ``inserters``: one per subscribing task, in
    order of task ids, at least one. ``positions``: indices of the values that a fields grouping selects. ``seed``: the
    producer's task id.
    """

    def __cinit__(self, str grouping not None, tuple inserters not None, tuple positions=(), int seed=0):
        if grouping not in KINDS:
            raise ValueError(f"a grouping is one of {', '.join(KINDS)}; Given: {grouping!r}")
        if not inserters or not all(isinstance(inserter, BatchInserter) for inserter in inserters):
            raise ValueError(f"a route leads to at least one BatchInserter; Given: {inserters!r}")
        self.kind = KINDS[grouping]
        self.inserters = inserters
        self.fan = len(inserters)
        self.selected = len(positions)
        self.turn = <uint64_t>seed % <uint64_t>self.fan
        self.state = ps_mix64(<uint64_t>seed + <uint64_t>0x9E3779B97F4A7C15)
        self.targets = <PyObject **>calloc(self.fan, sizeof(PyObject *))
        self.positions = <Py_ssize_t *>calloc(max(1, self.selected), sizeof(Py_ssize_t))
        if self.targets is NULL or self.positions is NULL:
            raise MemoryError("no memory for a route")
        for i, inserter in enumerate(inserters):
            self.targets[i] = <PyObject *>inserter
        for i, position in enumerate(positions):
            if position < 0:
                raise ValueError(f"a fields grouping selects values by their index, 0 or more; Given: {positions!r}")
            self.positions[i] = position
            self.widest = max(self.widest, position + 1)

    def __dealloc__(self):
        free(self.targets)
        free(self.positions)

    cdef BatchInserter choose(self, object payload):
        """The one target of a grouping other than all."""
        cdef uint64_t key
        cdef Py_ssize_t i
        if self.fan == 1 or self.kind == GROUPING_GLOBAL:
            return <BatchInserter>self.targets[0]
        if self.kind == GROUPING_SHUFFLE:
            i = self.turn
            self.turn = i + 1 if i + 1 < self.fan else 0
            return <BatchInserter>self.targets[i]
        if self.kind == GROUPING_FIELDS:
            key = 0
            for i in range(self.selected):
                key = key * 31 + stable_hash(<object>PyTuple_GET_ITEM(payload, self.positions[i]))
            return <BatchInserter>self.targets[key % <uint64_t>self.fan]
        self.state ^= self.state << 13
        self.state ^= self.state >> 7
        self.state ^= self.state << 17
        return <BatchInserter>self.targets[self.state % <uint64_t>self.fan]


@cython.final
cdef class StreamRouter:
    """``StreamRouter(source, pending, routes, view)``: without routes and view, emits are counted and dropped."""

    def __init__(self, TupleSource source not None, PendingEmits pending not None, tuple routes=(), RowView view=None):
        self.source = source
        self.arity = len(source.fields)
        self.pending = pending
        for route in routes:
            if not isinstance(route, Route):
                raise TypeError(f"routes of {source!r} are Routes; Given: {route!r}")
            if (<Route>route).widest > self.arity:
                wanted = (<Route>route).widest - 1
                raise ValueError(f"a route of {source!r} selects value {wanted}; Given: {source.fields!r}")
        self.routes = routes
        self.view = view
        if len(routes) == 1 and len((<Route>routes[0]).inserters) == 1:
            self.only = (<Route>routes[0]).inserters[0]

    cdef int route(self, object values, long long offset, list task_ids) except -1:
        """Takes one emit. `values`: tuple or list of the stream's arity. `task_ids`: collects the targets, or None."""
        cdef object payload
        self.emitted += 1  # hot
        if self.view is not None:
            return self.view.append(values, offset)
        payload = PyList_AsTuple(values) if PyList_CheckExact(values) else values
        if self.only is not None and task_ids is None:
            self.transferred += 1  # hot
            return transfer(self.pending, self.only, new_tuple(self.source, payload, offset))
        return self.route_to_all(payload, offset, task_ids)

    cdef int route_to_all(self, object payload, long long offset, list task_ids) except -1:
        cdef Route route
        cdef BatchInserter inserter
        cdef Py_ssize_t i
        for entry in self.routes:
            route = <Route>entry
            if route.kind == GROUPING_ALL:
                for i in range(route.fan):
                    inserter = <BatchInserter>route.targets[i]
                    self.transferred += 1
                    transfer(self.pending, inserter, new_tuple(self.source, payload, offset))
                    if task_ids is not None:
                        task_ids.append(inserter.task)
            else:
                inserter = route.choose(payload)
                self.transferred += 1
                transfer(self.pending, inserter, new_tuple(self.source, payload, offset))
                if task_ids is not None:
                    task_ids.append(inserter.task)
        return 0
