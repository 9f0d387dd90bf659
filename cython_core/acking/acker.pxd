"""See acker.pyx and acker.h."""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t, uint64_t

from cython_core.primitives.latency_histogram cimport ps_histogram


cdef extern from "cython_core/acking/acker.h" nogil:
    cdef enum ps_verdict:
        PS_ROOT_OPEN
        PS_ROOT_COMPLETE
        PS_ROOT_ACKED
        PS_ROOT_FAILED
        PS_ROOT_TIMED_OUT
        PS_ROOT_FAILED_WITH_GROUP
        PS_ROOT_RETRY_DUE
        PS_ROOT_EMIT_RAISED
    ctypedef struct ps_root:
        uint64_t attempt
        uint64_t failed_with_group
        ps_root *next
        uint32_t waiting
        PyObject *id
        PyObject *values
        PyObject *where
        PyObject *reason
        int64_t offset
        uint32_t emits
        uint32_t generation
        ps_verdict verdict
    ctypedef struct ps_spout_roots:
        ps_root *first
        uint64_t settled
        uint64_t open
        uint64_t acked
        bint notifies_acks
        ps_histogram *complete
    ctypedef struct ps_acker:
        ps_root **slabs
        size_t slab_count
        ps_root **window
        uint64_t mask
        uint64_t oldest
        uint64_t next
        uint64_t now
        uint64_t timeout
        uint64_t paused
        bint by_progress
        bint coarse
        uint64_t *failed
        size_t failed_count
        uint64_t failures
    const uint64_t PS_NO_TIMEOUT
    const size_t PS_ACKER_SLAB
    int ps_acker_init(ps_acker *acker, uint64_t seed, uint64_t now, uint64_t tick_nanos)
    void ps_acker_close(ps_acker *acker)
    void ps_acker_free(ps_acker *acker)
    uint64_t ps_acker_edge(ps_acker *acker)
    ps_root *ps_acker_open(ps_acker *acker, ps_spout_roots *spout, uint64_t edge)
    void ps_acker_release(ps_acker *acker, ps_root *root)
    void ps_acker_add(ps_root *root, uint64_t attempt, uint64_t edge)
    bint ps_acker_take(const ps_acker *acker, ps_root *root, uint64_t attempt)
    void ps_acker_take_late(ps_acker *acker, uint64_t began, uint64_t now)
    void ps_acker_wait(ps_root *root, uint64_t attempt)
    void ps_acker_none_waits(ps_acker *acker)
    bint ps_acker_ack(ps_acker *acker, ps_root *root, uint64_t attempt, uint64_t edge)
    bint ps_acker_fail(ps_acker *acker, ps_root *root, uint64_t attempt, ps_verdict verdict)
    int ps_acker_link(ps_acker *acker, ps_root *one, ps_root *other)
    ps_root *ps_acker_take_settled(ps_spout_roots *spout)
    void ps_acker_keep_settled(ps_spout_roots *spout, ps_root *root)
    void ps_acker_begin_turn(const ps_acker *acker, ps_spout_roots *spout)
    void ps_acker_end_turn(ps_acker *acker, ps_spout_roots *spout)
    int ps_acker_rest(ps_acker *acker, ps_root *root, uint64_t due)
    bint ps_acker_keeps_time(const ps_acker *acker)
    int ps_acker_reset(ps_acker *acker, ps_root *root, uint64_t attempt)
    size_t ps_acker_expire(ps_acker *acker, uint64_t now)
    void ps_acker_forget(ps_acker *acker, uint64_t before)
    uint64_t ps_acker_next_expiry(const ps_acker *acker)


cdef extern from "cython_core/timing/coarse_clock.h" nogil:
    uint64_t ps_coarse_nanos()


cdef extern from "Python.h":
    void ps_xdecref "Py_XDECREF"(PyObject *)


@cython.final
cdef class Acker:
    cdef ps_acker acker
    cdef object monotonic       # a clock in seconds, None: the machine's
    cdef public uint64_t span   # attempts that may be ahead of the oldest open one
    cdef uint64_t paused_at     # nanoseconds of the clock; 0: it is not
    cdef uint64_t read_clock(self) except? 0
    cdef uint64_t read_running_clock(self) except? 0
    cdef int none_waits(self) except -1
    cdef int pause(self) except -1
    cdef int resume(self) except -1
    cdef int read_clock_now(self) except -1
    cdef int let_all_go(self) except -1


# What a new tuple becomes an edge of. Borrowed pointers: the function that fills it keeps the objects
# alive.
cdef struct anchor_t:
    ps_root *root       # NULL: none, or several
    uint64_t attempt
    PyObject *roots     # the Roots of several; NULL
    long long offset    # of the spout tuple that it stems from; -1: none


@cython.final
cdef class Roots:
    # Several roots that tuples are edges of. Immutable, shared by them.
    cdef Py_ssize_t count
    cdef ps_root **roots
    cdef uint64_t *attempts
    cdef Acker owner
    cdef int add_edge(self, uint64_t edge) except -1
    cdef bint take(self) noexcept
    cdef int take_again(self, uint32_t count) noexcept
    cdef int wait(self) noexcept
    cdef int ack_edge(self, uint64_t edge) except -1
    cdef int fail(self, object reason) except -1
    cdef int time_out(self) except -1
    cdef int fail_with_group(self) except -1
    cdef int reset_timeout(self) except -1
    cdef uint64_t attempt_of_row(self) except? 0
    cdef bint is_lost(self) except -1


cdef enum:
    NO_ATTEMPT = 0      # of a row that belongs to no tree

cdef uint64_t LOST      # instead of an attempt: it has failed already, the row is none


cdef int release_root(ps_root *root) except -1
cdef int fail_root(Acker acker, ps_root *root, uint64_t attempt, object reason) except -1
cdef int time_out_root(Acker acker, ps_root *root, uint64_t attempt) except -1
cdef Roots roots_for(Acker acker, Py_ssize_t count)
cdef object roots_of(Acker acker, list roots, list attempts)


cdef inline int ack_edge(ps_acker *acker, ps_root *root, uint64_t attempt, uint64_t edge) except -1:
    # One edge of a root is acked.
    if ps_acker_ack(acker, root, attempt, edge):
        release_root(root)
        ps_acker_release(acker, root)
    return 0


cdef inline anchor_t no_anchor(long long offset) noexcept:
    # Of what belongs to no tree.
    cdef anchor_t anchor
    anchor.root = NULL
    anchor.attempt = NO_ATTEMPT
    anchor.roots = NULL
    anchor.offset = offset
    return anchor


cdef inline uint64_t attempt_of_row(const anchor_t *anchor) except? 0:
    # The attempt that a row belongs to which is put out with this anchor; LOST where that has failed.
    if anchor.root is not NULL:
        return anchor.attempt if anchor.root.attempt == anchor.attempt else LOST
    if anchor.roots is not NULL:
        return (<Roots>anchor.roots).attempt_of_row()
    return NO_ATTEMPT
