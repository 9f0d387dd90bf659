"""Declares what spout_executor.pyx and its parts define: spout_replay.pxi, spout_executor.pyx."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from cython_core.acking.acker cimport ps_acker_release, ps_root, ps_verdict, release_root
from cython_core.executors.executor cimport Executor, ps_call
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.output_collector cimport SpoutOutputCollector
from cython_core.tuples.tuple cimport Tuple


# spout_replay.pxi

cdef class SpoutReplay(Executor):
    cdef SpoutOutputCollector collector
    cdef public object retries            # decides over failed tuples of a range; None: the first one fails the run
    cdef long long replayed               # offset of the tuple that is between two attempts; -1: none is
    cdef public long most_tree_rows       # rows of a batch in one tree, where bolts take them one by one
    cdef long tree_rows                   # the same now: fewer after a failure, which repeats all of them
    cdef long unfailed                    # rows sent since tree_rows was set
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


# spout_executor.pyx

@cython.final
cdef class SpoutExecutor(SpoutReplay):
    cdef object call                      # bound next_tuple, or next_batch
    cdef ps_call entry                    # the same, resolved
    cdef bint batched                     # call gives Arrow batches
    cdef BatchSlice rows                  # of the batch that is being sent to bolts, slice by slice; None
    cdef Py_ssize_t sent                  # of these
    cdef readonly bint exhausted
    cdef bint closed                      # exhausted by deadline or permits: the spout may have more
    cdef readonly bint until_idle         # the slice ends where the spout has nothing, as the scheduler sees it
    cdef public long skips                # turns between two that look for verdicts (topology.spout.recvq.skips)
    cdef long skipped
    cdef int raises                       # of next_tuple, in a row
    cdef public object outage             # of its source: a SourceOutage; None: an exception is one
    cdef readonly bint resting            # the source was busy when it was last asked
    cdef unsigned long long notified_acks
    cdef unsigned long long discarded     # trees without a verdict when the worker was given up
    cdef readonly unsigned long long fails   # trees that have failed
    cdef readonly unsigned long long timed_out   # of these, trees whose time was over
    cdef public unsigned long long pending_high_mark   # most open trees at the end of a turn, since it was last set
    cdef int note_overrides(self) except -1
    cdef int enter_compiled(self) except -1
    cdef bint awaits(self) noexcept
    cdef bint at_most(self) noexcept
    cdef int on_verdict(self, ps_root *root) except -1
    cdef int invoke(self, str method, object tup_id) except -1
    cdef bint next_batch(self) except -1
    cdef int send_slice(self, long quota) except -1
    cdef long work(self, long quota) except -1
    cdef long ask(self, long quota, uint64_t until) except -1
    cdef int look_at(self, PyObject *answer) except -1
    cdef bint is_out(self) except -1
    cdef long ask_batch(self, long quota) except -1
    cdef long notify_verdicts(self) except -1
    cdef int end_spent_slice(self) noexcept
    cdef bint caught(self, str method) except -1
    cdef bint is_busy(self, str method, object error) except -1
    cdef bint rests(self) except -1
    cdef int revive(self) except -1
    cdef bint over(self) except -1
