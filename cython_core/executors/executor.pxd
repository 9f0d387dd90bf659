from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.queues.queues cimport FlushFlag, PendingEmits, ps_flush_flag, ps_flush_take
from cython_core.routing.output_collector cimport OutputCollector
from cython_core.timing.turn_times cimport StallReason, TurnTimes
from cython_core.tuples.tuple cimport Tuple


cdef extern from "Python.h":
    void ps_decref "Py_DECREF"(PyObject *)


cdef extern from "cython_core/executors/component_call.h":
    ctypedef struct ps_call:
        pass
    void ps_call_resolve(ps_call *call, PyObject *method)
    ctypedef PyObject *(*ps_component_entry)(PyObject *, PyObject **, size_t, PyObject *) except NULL
    void ps_call_compiled(ps_call *call, ps_component_entry entry, PyObject *component)
    PyObject *ps_call_none(const ps_call *call)
    PyObject *ps_call_one(const ps_call *call, PyObject *argument)


cdef extern from "cython_core/timing/coarse_clock.h" nogil:
    uint64_t ps_coarse_nanos()


cdef class Executor:
    cdef readonly str component
    cdef readonly int task
    cdef readonly object instance         # the user's spout or bolt
    cdef readonly OutputCollector out     # its way out
    cdef readonly PendingEmits pending
    cdef readonly dict routers            # stream name → StreamRouter
    cdef readonly tuple inserters         # every batch that this executor fills
    cdef readonly long most_calls         # in a turn, of calls that emit row by row
    cdef bint writes_output               # one of its streams is an output
    cdef bint exits                       # an exception of the component fails the run
    cdef readonly object reported         # deque: ComponentFailed that did not, or (exception, tuple) that it reported
    cdef public uint64_t turn_time_limit  # nanoseconds that a turn may take before it ends early; 0: no limit
    cdef FlushFlag flush_flag_object      # of the worker's flush timer; None: it has none
    cdef ps_flush_flag *flush_flag        # the same; NULL
    cdef bint slow                        # the last turn ended early: look at the clock after every call
    # Counters, read from outside.
    cdef readonly unsigned long long executed   # calls of next_tuple, next_batch or process
    cdef readonly unsigned long long stalls     # turns spent waiting for room downstream
    cdef readonly unsigned long long errors     # exceptions that did not fail the run
    cdef readonly TurnTimes times
    cdef long turn(self, long quota) except -1
    cdef bint held_back(self) noexcept
    cdef void end_turn(self, unsigned long long calls) noexcept
    cdef void stall_begin(self, StallReason reason) noexcept
    cdef void stall_end(self) noexcept
    cdef bint flush(self) noexcept
    cdef bint idle(self) noexcept
    cdef bint is_late(self) noexcept
    cdef int fail_late_emits(self) except -1
    cdef int enter_call(self) noexcept
    cdef int leave_call(self) noexcept
    cdef bint waits(self) noexcept
    cdef object survive(self, str method, Tuple tup, long long offset, object error)
    cdef object interrupted(self, str method, Tuple tup, long long offset, object error)


cdef inline bint past_deadline(Executor executor, uint64_t until, long calls) noexcept:
    # Whether a turn must end early: asked after each call, looks at the clock after the first and every fourth one, so
    # that no turn begins with several slow calls. Before, what is batched is published if the flush timer asks for it.
    if executor.flush_flag is not NULL and ps_flush_take(executor.flush_flag):  # hot
        executor.flush()
    if until == 0 or (not executor.slow and (calls & 3) != 1):  # hot
        return 0  # hot
    executor.slow = ps_coarse_nanos() >= until
    return executor.slow


cdef extern from *:
    """
    static int ps_reraise(void) { return -1; }
    """
    int reraise "ps_reraise"() except -1   # of the exception that is set
