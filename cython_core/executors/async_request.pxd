cimport cython

from cython_core.routing.bolt_base cimport BoltBase
from cython_core.routing.bolt_output_collector cimport BoltOutputCollector
from cython_core.timing.purgatory cimport DelayedOperation
from cython_core.tuples.tuple cimport Tuple


@cython.final
cdef class RequestLine:
    # What the requests of one bolt share.
    cdef BoltOutputCollector collector
    cdef object loop                # EventLoop
    cdef unsigned long thread       # that turns the loop
    cdef object finished            # deque of requests whose coroutine has ended, not yet settled by the executor
    cdef list expired               # requests that have run out of time, the same
    cdef list resumed               # requests whose time is to run anew, the same
    cdef list strays                # (request, method, error): what went wrong behind the end of its process()
    cdef bint ordered


@cython.final
cdef class AsyncRequest(DelayedOperation):
    cdef readonly Tuple tup
    cdef readonly object task       # asyncio.Task; None: it has ended
    cdef RequestLine line
    cdef str method                 # that its coroutine is a call of
    cdef double begun               # the clock without the time between runs, in seconds
    cdef bint paused                # its time does not run
    cdef bint leads                 # what it emits leaves at once
    cdef bint done
    cdef bint has_emitted
    cdef object unawaited           # the error for a coroutine that it has dropped; None: it has dropped none
    cdef bint abandoned             # it was cancelled and goes on all the same: the executor waits for it no longer
    cdef list held                  # what it emitted and acked before it led: (method, arguments); None: nothing
    cdef object now_or_later(self, str method, tuple arguments)
    cdef int refuse_stray(self, tuple arguments) except -1
    cdef object do(self, str method, tuple arguments)
    cdef int lead(self) except -1


cdef class AsyncBase(BoltBase):
    # Has no fields: see output_collector.pyx.
    pass


cdef object begin(AsyncRequest request, object create_task, object coroutine)
