cimport cython

from cython_core.acking.acker cimport anchor_t
from cython_core.executors.bolt_executor cimport WaitingExecutor
from cython_core.links.link_end cimport LinkEnd
from cython_core.tuples.tuple cimport Tuple, TupleSource


@cython.final
cdef class RemoteExecutor(WaitingExecutor):
    cdef readonly object link               # TaskLink
    cdef LinkEnd end                        # of it, the parent's
    cdef object pack                        # values → the parts of a frame
    cdef object unpack
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
    cdef tuple last_numbers
    cdef anchor_t last_anchor
    cdef object last_roots
    cdef Tuple last_tup
    cdef bint started
    cdef bint ended                         # the link is
    cdef public long pending_high_mark      # most tuples away, since it was last set
    cdef object place_of(self, TupleSource source)
    cdef long room(self) noexcept
    cdef int post(self, unsigned int kind, object value) except -1
    cpdef bint send_waiting(self) except -1
    cdef int mark(self, unsigned int kind) except -1
    cdef int send_tuples(self, list tups, list places, list values) except -1
    cdef int send_singly(self, list tups, list places, list values, object error) except -1
    cdef long serve(self) except -1
    cdef long serve_one(self) except -1
    cdef long take_frame(self, unsigned int kind, object data) except -1
    cdef long take_work(self, tuple work) except -1
    cdef int count(self, tuple counts) except -1
    cdef int emit_up(self, str stream, tuple numbers, object values, object direct) except -1
    cdef int fail_with_group(self, list tups) except -1
    cdef int acked(self, unsigned long long number) except -1
    cdef int failed_up(self, unsigned long long number, str method, object packed) except -1
    cdef int reported_up(self, tuple numbers, str method, object packed, bint retries) except -1
    cdef int broken(self, object whose, str method, object packed) except -1
    cdef Tuple away_like(self, object whose)
    cdef unsigned long long failures        # of the acker, when lost tuples were last looked for
    cdef int cancel_lost(self) except -1
    cdef int note_under_way(self) noexcept
