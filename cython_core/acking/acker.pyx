"""The acker of a worker: which spout tuples are wholly processed, and which attempts of them have failed.

    spout.emit(values, tup_id) ──► root in a slot ◄── one edge per tuple anchored to it      (acker.h)
                                      │ all edges acked, one failed, or its time has come
                                      ▼
                        settled roots of the spout's task ──► spout.ack(tup_id), fail(tup_id) or a replay

The rules are Storm's (its guide to guaranteed message processing): the first failed edge fails the tree at once, what
comes later changes nothing, and a tree without edges is acked as soon as the emit returns.

Threading law: with the interpreter's lock.
"""

cimport cython
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport uint64_t

from cython_core.timing.timers cimport to_nanos, to_seconds

import os

cdef uint64_t LOST = 0xFFFFFFFFFFFFFFFF
cdef uint64_t TICK_NANOS = 1_000_000
cdef uint64_t SPAN = 1 << 20
cdef double LONGEST_WAIT = 0.005   # seconds


@cython.final
cdef class Acker:
    """``Acker(timeout, by_progress, monotonic, seed)``: no roots yet.

    ``timeout``: seconds after which a tree fails that has no verdict, fractions allowed; 0: never. They are counted
    while none of its tuples waits in a queue, from the moment when a bolt took the last one. ``by_progress``: each ack
    of one of its tuples begins them anew, too (STORM-2359). ``monotonic``: a clock in seconds,
    None: the machine's. ``seed`` of the edge ids, by default one of the system's. ``span``: how many attempts spouts
    may be ahead of the oldest open one, which bounds what is kept of their rows.
    """

    def __cinit__(self, double timeout=0, bint by_progress=False, monotonic=None, seed=None):
        if not 0 <= timeout < 1e9:
            raise ValueError(f"a time-out is a number of seconds, 0 for none; Given: {timeout!r}")
        self.monotonic = monotonic
        if seed is None:
            seed = int.from_bytes(os.urandom(8), "little")
        if ps_acker_init(&self.acker, seed, self.read_clock(), TICK_NANOS) < 0:
            raise MemoryError("no memory for an acker")
        self.acker.timeout = <uint64_t>(timeout * 1e9)
        self.acker.by_progress = by_progress
        self.acker.coarse = monotonic is None
        self.span = SPAN

    def __dealloc__(self):
        self.let_all_go()
        ps_acker_free(&self.acker)

    cdef uint64_t read_clock(self) except? 0:
        """Nanoseconds, without those in which the worker rested. It stands while the worker rests."""
        return self.paused_at if self.paused_at > 0 else self.read_running_clock()

    cdef uint64_t read_running_clock(self) except? 0:
        cdef uint64_t nanos = ps_coarse_nanos() if self.monotonic is None else to_nanos(self.monotonic())
        return nanos - self.acker.paused

    cdef int pause(self) except -1:
        """Stops the clock while the worker waits for its rows to be taken: no tree times out meanwhile.

        Order: threads of executors go on and read the clock. So it has to stand from now on, not only be put back.
        """
        if self.paused_at == 0:
            self.paused_at = max(<uint64_t>1, self.read_running_clock())
            self.acker.coarse = False
        return 0

    cdef int resume(self) except -1:
        if self.paused_at > 0:
            self.acker.paused += self.read_running_clock() - self.paused_at
            self.paused_at = 0
            self.acker.coarse = self.monotonic is None
        return 0

    cdef int none_waits(self) except -1:
        """All is drained: tuples that still count as waiting are in the hands of a bolt, whose time runs."""
        ps_acker_none_waits(&self.acker)
        return 0

    cdef int read_clock_now(self) except -1:
        self.acker.now = max(self.acker.now, self.read_clock())
        return 0

    def expire(self):
        """Fails the trees whose time has come by the clock; how many."""
        return ps_acker_expire(&self.acker, self.read_clock())

    def seconds_to_wait(self):
        """Until the next tree may time out; at most 5 ms where a thread of the user's may give a verdict meanwhile,
        which is never where nothing happens but by the clock that was given."""
        cdef double seconds = max(0.0, self.next_expiry - (self.read_clock() + self.acker.paused) / 1e9) + 1e-6
        return min(seconds, LONGEST_WAIT) if self.monotonic is None else seconds

    @property
    def next_expiry(self):
        """When the next tree may time out, a reading of the clock in seconds; infinity: none will."""
        cdef uint64_t nanos = ps_acker_next_expiry(&self.acker)
        return float("inf") if nanos == PS_NO_TIMEOUT else to_seconds(nanos + self.acker.paused)

    @property
    def failed(self):
        """How many failed attempts are remembered because rows may be theirs."""
        return self.acker.failed_count

    def close(self):
        """All roots end without a verdict, and nothing is kept of them; for a worker that is given up."""
        ps_acker_close(&self.acker)
        self.let_all_go()

    cdef int let_all_go(self) except -1:
        cdef size_t i, j
        for i in range(self.acker.slab_count):
            for j in range(PS_ACKER_SLAB):
                release_root(&self.acker.slabs[i][j])


cdef int release_root(ps_root *root) except -1:
    """What a slot keeps. Order: taken out before it ends, as its end may run code that opens roots."""
    cdef PyObject *id = root.id
    cdef PyObject *values = root.values
    cdef PyObject *where = root.where
    cdef PyObject *reason = root.reason
    root.id = root.values = root.where = root.reason = NULL
    ps_xdecref(id)
    ps_xdecref(values)
    ps_xdecref(where)
    ps_xdecref(reason)
    return 0


cdef int fail_root(Acker acker, ps_root *root, uint64_t attempt, object reason) except -1:
    """Fails the root at once, for this reason; nothing where it has its verdict."""
    if root.attempt == attempt or root.failed_with_group == attempt:
        Py_INCREF(reason)
        root.reason = <PyObject *>reason
        ps_acker_fail(&acker.acker, root, attempt, PS_ROOT_FAILED)
    return 0


cdef int time_out_root(Acker acker, ps_root *root, uint64_t attempt) except -1:
    """Its time is over, as another clock says; nothing where it has its verdict."""
    ps_acker_fail(&acker.acker, root, attempt, PS_ROOT_TIMED_OUT)
    return 0


@cython.final
@cython.no_gc
cdef class Roots:
    def __dealloc__(self):
        PyMem_Free(self.roots)
        PyMem_Free(self.attempts)

    cdef int add_edge(self, uint64_t edge) except -1:
        cdef Py_ssize_t i
        for i in range(self.count):
            ps_acker_add(self.roots[i], self.attempts[i], edge)
        return 0

    cdef bint take(self) noexcept:
        """A tuple of these roots leaves its queue; 0 if all of them have failed."""
        cdef Py_ssize_t i
        cdef bint counts = 0
        for i in range(self.count):
            counts |= ps_acker_take(&self.owner.acker, self.roots[i], self.attempts[i])
        return counts

    cdef int take_again(self, uint32_t count) noexcept:
        """As many more tuples leave the queue at the same time."""
        cdef ps_root *root
        cdef Py_ssize_t i
        for i in range(self.count):
            root = self.roots[i]
            if root.attempt == self.attempts[i]:
                root.waiting -= min(root.waiting, count)
        return 0

    cdef int wait(self) noexcept:
        cdef Py_ssize_t i
        for i in range(self.count):
            ps_acker_wait(self.roots[i], self.attempts[i])
        return 0

    cdef int ack_edge(self, uint64_t edge) except -1:
        cdef Py_ssize_t i
        for i in range(self.count):
            ack_edge(&self.owner.acker, self.roots[i], self.attempts[i], edge)
        return 0

    cdef int time_out(self) except -1:
        cdef Py_ssize_t i
        for i in range(self.count):
            time_out_root(self.owner, self.roots[i], self.attempts[i])
        return 0

    cdef int fail(self, object reason) except -1:
        cdef Py_ssize_t i
        for i in range(self.count):
            fail_root(self.owner, self.roots[i], self.attempts[i], reason)
        return 0

    cdef int reset_timeout(self) except -1:
        cdef Py_ssize_t i
        for i in range(self.count):
            if ps_acker_reset(&self.owner.acker, self.roots[i], self.attempts[i]) < 0:
                raise MemoryError("no memory for a timer")
        return 0

    cdef uint64_t attempt_of_row(self) except? 0:
        """A row of several roots ties them together."""
        cdef Py_ssize_t i
        if self.is_lost():
            return LOST
        for i in range(1, self.count):
            if ps_acker_link(&self.owner.acker, self.roots[0], self.roots[i]) < 0:
                raise MemoryError("no memory for a row of several trees")
        return self.attempts[0]

    cdef bint is_lost(self) except -1:
        """Whether one has failed; then the others fail, too."""
        cdef Py_ssize_t i
        cdef bint lost = False
        for i in range(self.count):
            lost = lost or self.roots[i].attempt != self.attempts[i]
        if lost:
            self.fail_with_group()
        return lost

    cdef int fail_with_group(self) except -1:
        """Those that are open, as something that they are to be processed with has failed."""
        cdef Py_ssize_t i
        for i in range(self.count):
            ps_acker_fail(&self.owner.acker, self.roots[i], self.attempts[i], PS_ROOT_FAILED_WITH_GROUP)
        return 0


cdef Roots roots_for(Acker acker, Py_ssize_t count):
    """With room for so many, to be filled."""
    cdef Roots made = Roots.__new__(Roots)
    made.owner = acker
    made.roots = <ps_root **>PyMem_Malloc(count * sizeof(ps_root *))
    made.attempts = <uint64_t *>PyMem_Malloc(count * sizeof(uint64_t))
    if made.roots is NULL or made.attempts is NULL:
        raise MemoryError("no memory for the roots of a tuple")
    made.count = count
    return made


cdef object roots_of(Acker acker, list roots, list attempts):
    """The Roots of these addresses."""
    cdef Roots made = roots_for(acker, len(roots))
    cdef Py_ssize_t i
    for i in range(made.count):
        made.roots[i] = <ps_root *><size_t>roots[i]
        made.attempts[i] = attempts[i]
    return made
