from libc.stdint cimport uint32_t

from cython_core.acking.acker cimport ps_acker_release, ps_root, ps_verdict, release_root
from cython_core.executors.executor cimport Executor
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.spout_output_collector cimport SpoutOutputCollector
from cython_core.tuples.tuple cimport Tuple


cdef class SpoutReplay(Executor):
    cdef SpoutOutputCollector collector
    cdef public object retries            # decides over failed tuples of a range; None: the first one fails the run
    cdef long long replayed               # offset of the tuple that is between two attempts; -1: none is
    cdef object blame_of(self, const ps_root *root)
    cdef int replay(self, ps_root *root) except -1
    cdef int replay_singly(self, BatchSlice values, Tuple failed, object tup_id, object where, long long offset,
                           uint32_t emits, object blame, ps_verdict verdict) except -1
    cdef int replay_rows(self, BatchSlice values, object tup_id, object where, long long offset, uint32_t emits,
                         object blame, ps_verdict verdict) except -1
    cdef int replay_values(self, object values, object tup_id, object where, long long offset, uint32_t emits,
                           object blame, ps_verdict verdict) except -1
    cdef double delay_of(self, object values, object where, long long offset, uint32_t emits, object blame) except? -2
    cdef int rest(self, object values, object tup_id, object where, uint32_t emits, double seconds) except -1
    cdef int emit_again(self, object values, object tup_id, object where, uint32_t emits) except -1


cdef inline int release_tree(SpoutOutputCollector collector, ps_root *root) except -1:
    # Its slot and what it holds are free.
    release_root(root)
    ps_acker_release(&collector.acker.acker, root)
    return 0
