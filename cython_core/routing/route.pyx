"""One subscription of a stream: a grouping, and the tasks that it chooses among.

Groupings follow Storm: shuffle is an exactly even round-robin, fields is ``hash mod n`` over the sorted target tasks
(with a hash that is stable across processes), global is the lowest task id, all is every task, none is uniform random
(seeded by the task id). Partial key is that one of the key's two candidate tasks which this producer has chosen less
often, direct the task that the producer names, custom what a user's object answers. Shuffle, none and partial key carry
on from range to range: a replay gives the same tuples, by other ways perhaps. Local-or-shuffle is shuffle: all targets
are in this worker.

Threading law: producer's thread only.
"""

cimport cython
from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_GET_ITEM
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

from cython_core.queues.queues cimport BatchInserter

include "stable_hash.pxi"
include "java_hash.pxi"


# Of both hashes.
cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1


cdef extern from *:
    """
    /* Python 3.12 and 3.13 let C recurse 10,000 deep, whatever the stack: that overflows the 1 MB of a thread on musl,
       and 8 MB with large frames. 1,000 is the depth that Python code has. Per thread: a value's methods may release
       the GIL. */
    static _Thread_local int ps_hash_depth = 0;

    static void ps_leave_hash(void) {
        ps_hash_depth--;
        Py_LeaveRecursiveCall();
    }

    static int ps_enter_hash(void) {
        if (ps_hash_depth >= 1000) {
            PyErr_SetString(PyExc_RecursionError, "a fields grouping hashes values nested at most 1,000 deep; does "
                            "this one contain itself?");
            return -1;
        }
        if (Py_EnterRecursiveCall(" while hashing a value for a fields grouping")) return -1;
        ps_hash_depth++;
        return 0;
    }
    """
    int ps_enter_hash() except -1
    void ps_leave_hash()


cdef extern from "cython_core/primitives/mix.h" nogil:
    uint64_t ps_mix64(uint64_t x)


cdef dict KINDS = {
    "shuffle": GROUPING_SHUFFLE,
    "local_or_shuffle": GROUPING_SHUFFLE,
    "fields": GROUPING_FIELDS,
    "all": GROUPING_ALL,
    "global": GROUPING_GLOBAL,
    "none": GROUPING_NONE,
    "direct": GROUPING_DIRECT,
    "partial_key": GROUPING_PARTIAL_KEY,
    "custom": GROUPING_CUSTOM,
}

cdef uint64_t SECOND_HASH = 0xA0761D6478BD642F


@cython.final
cdef class Route:
    """``Route(grouping, inserters, positions, seed, java, custom)``.

    ``grouping``: shuffle, local_or_shuffle, fields, all, global, none, direct, partial_key or custom. ``inserters``:
    one per subscribing task, in order of task ids, at least one. ``positions``: indices of the values that a fields or
    partial key grouping selects. ``seed``: the producer's task id. ``java``: a fields grouping hashes as Storm does.
    ``custom``: what has ``choose_tasks(task, values)``.
    """

    def __cinit__(
        self,
        str grouping not None,
        tuple inserters not None,
        tuple positions=(),
        int seed=0,
        bint java=False,
        object custom=None,
    ):
        if grouping not in KINDS:
            raise ValueError(f"a grouping is one of {', '.join(KINDS)}; Given: {grouping!r}")
        if not inserters or not all([isinstance(inserter, BatchInserter) for inserter in inserters]):
            raise ValueError(f"a route leads to at least one BatchInserter; Given: {inserters!r}")
        if (grouping == "custom") != (custom is not None):
            raise ValueError(f"a custom route, and no other, has an object that chooses; Given: {custom!r}")
        self.kind = KINDS[grouping]
        self.java = java
        self.custom = custom
        if self.kind == GROUPING_DIRECT or self.kind == GROUPING_CUSTOM:
            self.by_task = {(<BatchInserter>inserter).task: inserter for inserter in inserters}
        self.inserters = inserters
        self.fan = len(inserters)
        self.selected = len(positions)
        self.turn = <uint64_t>seed % <uint64_t>self.fan
        self.state = ps_mix64(<uint64_t>seed + <uint64_t>0x9E3779B97F4A7C15)
        self.targets = <PyObject **>calloc(self.fan, sizeof(PyObject *))
        self.positions = <Py_ssize_t *>calloc(max(1, self.selected), sizeof(Py_ssize_t))
        if self.kind == GROUPING_PARTIAL_KEY:
            self.chosen = <uint64_t *>calloc(self.fan, sizeof(uint64_t))
            if self.chosen is NULL:
                raise MemoryError("no memory for a route")
        if self.targets is NULL or self.positions is NULL:
            raise MemoryError("no memory for a route")
        for i, inserter in enumerate(inserters):
            self.targets[i] = <PyObject *>inserter
        for i, position in enumerate(positions):
            if position < 0:
                raise ValueError(f"a grouping selects values by their index, 0 or more; Given: {positions!r}")
            self.positions[i] = position
            self.widest = max(self.widest, position + 1)

    def __dealloc__(self):
        free(self.targets)
        free(self.positions)
        free(self.chosen)

    cdef BatchInserter choose(self, object payload):
        """The one target of a grouping other than all, direct and custom."""
        return <BatchInserter>self.targets[self.place(payload)]

    cdef Py_ssize_t place(self, object payload) except -1:
        """Which of the targets that is."""
        cdef uint64_t key
        cdef Py_ssize_t i
        if self.fan == 1 or self.kind == GROUPING_GLOBAL:
            return 0
        if self.kind == GROUPING_SHUFFLE:
            i = self.turn
            self.turn = i + 1 if i + 1 < self.fan else 0
            return i
        if self.kind == GROUPING_FIELDS and self.java:
            i = java_hash_of_all(payload, self.positions, self.selected) % self.fan
            return i if i >= 0 else i + self.fan
        if self.kind == GROUPING_FIELDS or self.kind == GROUPING_PARTIAL_KEY:
            key = 0
            for i in range(self.selected):
                key = key * 31 + stable_hash(<object>PyTuple_GET_ITEM(payload, self.positions[i]))
            if self.kind == GROUPING_PARTIAL_KEY:
                return self.less_chosen(key)
            return key % <uint64_t>self.fan
        self.state ^= self.state << 13
        self.state ^= self.state >> 7
        self.state ^= self.state << 17
        return self.state % <uint64_t>self.fan

    cdef Py_ssize_t place_of_key(self, tuple columns, Py_ssize_t row) except -1:
        """As ``place`` of a fields grouping, of a row of columns; not with Java's hashes."""
        cdef uint64_t key = 0
        cdef Py_ssize_t i
        if self.fan == 1:
            return 0
        for i in range(self.selected):
            column = <object>PyTuple_GET_ITEM(columns, self.positions[i])
            key = key * 31 + stable_hash(<object>PyTuple_GET_ITEM(column, row))
        return key % <uint64_t>self.fan

    cdef Py_ssize_t less_chosen(self, uint64_t key) noexcept:
        """Which of the key's two candidates, two different targets, was chosen less often; the first where equal."""
        cdef Py_ssize_t first = <Py_ssize_t>(key % <uint64_t>self.fan)
        cdef Py_ssize_t second = <Py_ssize_t>(ps_mix64(key ^ SECOND_HASH) % <uint64_t>(self.fan - 1))
        if second >= first:
            second += 1
        if self.chosen[second] < self.chosen[first]:
            first = second
        self.chosen[first] += 1
        return first
