cimport cython
from libc.stdint cimport uint64_t

from cython_core.executor cimport Executor, ps_call
from cython_core.output_collector cimport SpoutOutputCollector


@cython.final
cdef class SpoutExecutor(Executor):
    cdef SpoutOutputCollector collector
    cdef object call                      # bound next_tuple, or next_batch
    cdef ps_call entry                    # the same, resolved
    cdef bint batched                     # call gives Arrow batches
    cdef readonly bint exhausted
    cdef bint cut                         # exhausted by deadline or permits: the spout may have more
    cdef readonly bint until_idle         # the slice ends where the spout has nothing, as the scheduler sees it
    cdef unsigned long long permits       # unbounded spouts: emits that this slice may still make
    cdef public long skips                # turns between two that look for verdicts (topology.spout.recvq.skips)
    cdef long skipped
    cdef int raises                       # of next_tuple, in a row
    cdef readonly unsigned long long acks    # trees whose ack was told to the spout
    cdef readonly unsigned long long fails
    cdef long work(self, long quota) except -1
    cdef long ask(self, long quota, uint64_t until) except -1
    cdef long ask_batch(self) except -1
    cdef long tell(self) except -1
    cdef int charge(self, unsigned long long emits) noexcept
    cdef int caught(self, str method) except -1
    cdef bint over(self) except -1
