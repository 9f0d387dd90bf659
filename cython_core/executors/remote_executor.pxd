cimport cython

from cython_core.acking.acker cimport anchor_t
from cython_core.executors.bolt_executor cimport WaitingExecutor
from cython_core.links.link_end cimport LinkEnd
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.tuples.tuple cimport Tuple, TupleSource


@cython.final
cdef class RemoteExecutor(WaitingExecutor):
    cdef readonly object link               # TaskLink
    cdef LinkEnd end                        # of it, the parent's
    cdef object pack                        # values → the parts of a frame
    cdef object unpack
    cdef bint sends_keys                    # of input rows go with the tuples
    cdef dict places                        # TupleSource → its place in the table that both processes have
    cdef dict away                          # number → Tuple that has no verdict yet
    cdef readonly unsigned long long sent   # numbers given so far: of tuples, and of marks that are answered
    cdef readonly unsigned long long settled        # of these: the child has nothing to do of the numbers below
    cdef unsigned long long marks           # numbers that are no tuples
    cdef unsigned long long credit          # tuples that may be sent and not be taken out of the child's queue
    cdef set cancelled                      # of these, the child was told that their trees have failed
    cdef list outgoing                      # (kind, parts) that wait for the ring
    cdef bint remote_batching               # the child's bolt is a BatchingBolt
    cdef bint remote_has_tick               # and has a process_tick
    # Of the frame that is read: what the last emit was anchored to.
    cdef object last_numbers
    cdef anchor_t last_anchor
    cdef object last_roots
    cdef Tuple last_tup
    cdef bint by_batch                      # the child's bolt takes batches
    cdef bint started
    cdef bint ended                         # the link is
    cdef public long away_high_mark         # most tuples away, since it was last set
    cdef public long unread_high_mark       # most tuples that the bolt had not begun, since it was last set
    cdef readonly unsigned long long process_busy   # nanoseconds in the bolt, a part of times.busy
    cdef object times_sent                  # deque: number of a frame's first tuple, nanoseconds when it was sent
    cdef object place_of(self, TupleSource source)
    cdef object batch_ends                  # deque: of batches that were sent, how many tuples were by then
    cdef long not_taken(self) noexcept
    cdef long room(self) noexcept
    cdef int post(self, unsigned int kind, object value) except -1
    cpdef bint send_waiting(self) except -1
    cdef int mark(self, unsigned int kind) except -1
    cdef int send_tuples(self, list tups, list places, list values) except -1
    cdef int begin_sending(self, list tups) except -1
    cdef int send_singly(self, list tups, list places, list values, object error) except -1
    cdef long serve(self) except -1
    cdef long serve_one(self) except -1
    cdef long take_frame(self, unsigned int kind, object data) except -1
    cdef long take_work(self, tuple work) except -1
    cdef int count(self, tuple counts) except -1
    cdef int send_frame(self, unsigned int kind, list parts, Py_ssize_t rows) except -1
    cdef int send_batch(self, Tuple tup, BatchSlice rows) except -1
    cdef int fail_unsent(self, Tuple tup, object values, object error) except -1
    cdef long emit_all(self, tuple emits) except -1
    cdef int emit_up(self, str stream, object numbers, object values) except -1
    cdef int emit_batch_up(self, str stream, BatchSlice rows, const anchor_t *anchor) except -1
    cdef int fail_with_group(self, list tups) except -1
    cdef int lost_up(self, unsigned long long number) except -1
    cdef int acked(self, unsigned long long number) except -1
    cdef int failed_up(self, unsigned long long number, str method, object packed, object rows) except -1
    cdef int reported_up(self, tuple numbers, str method, object packed, bint retries) except -1
    cdef int broken(self, object whose, str method, object packed) except -1
    cdef Tuple away_like(self, object whose)
    cdef unsigned long long failures        # of the acker, when lost tuples were last looked for
    cdef int cancel_lost(self) except -1
    cdef int note_under_way(self) noexcept
