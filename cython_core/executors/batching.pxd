"""Declares what batching.pyx and its parts define: batching.pyx, held_batches.pxi, joining.pxi."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.routing.component_base cimport BoltBase
from cython_core.routing.output_collector cimport BoltOutputCollector
from cython_core.timing.timers cimport DelayedOperation, Outcome, Purgatory, TimerService
from cython_core.tuples.tuple cimport Tuple


# batching.pyx

cdef class BatchingBase(BoltBase):
    # Has no fields: see output_collector.pyx.
    pass


# held_batches.pxi

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


# joining.pxi

@cython.final
@cython.no_gc
cdef class WaitingJoin(DelayedOperation):
    # Neither it nor its tuples are seen by the garbage collector, which would look at each of very many that wait.
    cdef PyObject *joins        # borrowed: its purgatory holds this
    cdef PyObject **tups        # owned; one for each input, NULL: has not come; instead of all NULL: waits no more
    cdef Py_ssize_t count
    cdef Py_ssize_t missing
    cdef uint64_t since         # when the first of them came
    cdef list taken_out(self)
    cdef int put_in(self, Py_ssize_t place, Tuple tup) except -1


@cython.final
cdef class InputKey:
    cdef str name
    cdef Py_ssize_t place       # of the input
    cdef dict waiting           # value → joins that wait for it, as in a purgatory
    cdef tuple positions        # of its fields
    cdef Py_ssize_t first       # of these
    cdef Py_ssize_t count
    cdef list others            # the same key of other inputs
    cdef object value_in(self, Tuple tup)


@cython.final
cdef class Joins:
    cdef object process_join    # of the bolt
    cdef object process_expired
    cdef bint auto_ack
    cdef BoltOutputCollector collector
    cdef TimerService timers    # of the thread that turns the bolt: its clock
    cdef Purgatory purgatory    # made with the first tuple, by that clock
    cdef double timeout         # seconds; infinity: until the micro-batch ends
    cdef readonly tuple names   # of the inputs
    cdef dict inputs            # (component, stream) → place of the input
    cdef dict places            # TupleSource → the same
    cdef list keys              # for each input a list of InputKeys
    cdef list order             # those that wait, oldest first, and some that do not any more
    cdef Py_ssize_t oldest_at   # before it there is none that waits
    cdef list complete          # tuples of joins that are to be given to the bolt
    cdef object expired         # a deque: very many can expire at a time
    cdef int serve(self, object bolt, BoltOutputCollector collector, TimerService timers) except -1
    cdef int take_in(self, Tuple tup) except -1
    cdef int add(self, Py_ssize_t place, Tuple tup) except -1
    cdef int add_others(self, list tups) except -1
    cdef WaitingJoin new_join(self)
    cdef WaitingJoin found(self, InputKey key, object value)
    cdef WaitingJoin merged(self, WaitingJoin one, WaitingJoin other)
    cdef bint forget_lost(self, WaitingJoin join) except -1
    cdef int watch_rest(self, WaitingJoin join, InputKey key, object value) except -1
    cdef int forget(self) except -1
    cdef list all_of_it(self)
    cdef list leave(self, WaitingJoin join, Outcome outcome)
    cdef list oldest(self)


cdef class JoinBase(BatchingBase):
    # Has no fields: see output_collector.pyx.
    pass


cdef PyObject *call_join(PyObject *callable, PyObject **arguments, size_t count, PyObject *names) except NULL
