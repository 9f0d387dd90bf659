"""A spout's turn: the verdicts of its trees first, then calls of ``next_tuple`` or ``next_batch``.

Threading law: as every executor.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport (
    PS_ROOT_ACKED, PS_ROOT_EMIT_RAISED, PS_ROOT_FAILED, PS_ROOT_RETRY_DUE, PS_ROOT_TIMED_OUT, Acker, ps_acker,
    ps_acker_begin_turn, ps_acker_end_turn, ps_acker_fail, ps_acker_keep_settled, ps_acker_take_settled, ps_root,
)
from cython_core.compiled.spout cimport CompiledSpout, call_next_tuple
from cython_core.executors.executor cimport (
    past_deadline, ps_call_compiled, ps_call_none, ps_call_resolve, ps_coarse_nanos, ps_decref, reraise,
)
from cython_core.primitives.latency_histogram cimport LatencyHistogram, ps_histogram_copy
from cython_core.queues.queues cimport PendingEmits
from cython_core.routing.batch_slice cimport SOMEWHERE, slice_of
from cython_core.routing.output_collector cimport (
    SpoutOutputCollector, set_current_collector, spout_is_at_most, spout_is_spent,
)
from cython_core.routing.stream_router cimport StreamRouter
from cython_core.timing.turn_times cimport (
    MAX_SPOUT_PENDING, NOTHING_TO_EMIT, SOURCE_UNAVAILABLE, TurnTimes, end_call,
)

import pyarrow as pa

from cython_core.arrow.row_error import coded, shown
from cython_core.executors.executor import ComponentFailed
from cython_core.routing.component_base import BoltBase, SpoutBase

include "spout_replay.pxi"


cdef extern from "Python.h":
    PyObject *ps_false "Py_False"


cdef int MOST_RAISES = 100    # in a row, of a spout that goes on, before it counts as having nothing
cdef int MOST_REPLAYS = 8
# Rows without a failure after which trees get twice as many. Too few: rows that fail now and then repeat many others.
# Too many: after one failure, a spout is slower for longer, for a tree costs about a microsecond.
cdef long ROWS_TO_DOUBLE = 4096
cdef long long NO_OFFSET = 1 << 62


@cython.final
cdef class SpoutExecutor(SpoutReplay):
    """Asks a spout for tuples, and tells it what became of them."""

    def __init__(
        self, str component not None, int task, instance, PendingEmits pending not None, dict routers not None
    ):
        if not isinstance(instance, SpoutBase) or isinstance(instance, BoltBase):
            raise TypeError(f"component {component!r} is run as a spout and must be one; Given: {type(instance)!r}")
        super().__init__(component, task, instance, pending, routers)
        # What begins with __ the engine alone emits.
        own = {name: router for name, router in routers.items() if not name.startswith("__")}
        self.out = self.collector = SpoutOutputCollector(instance, own)
        self.collector.last_offset = -1
        self.collector.tracks = self.collector.acker is not None
        self.collector.roots.complete = &self.collector.complete
        self.note_overrides()
        self.exhausted = True

    def ready(self):
        SpoutReplay.ready(self)
        self.note_overrides()

    cdef int note_overrides(self) except -1:
        """Notes whether the spout overrides ``ack``; if not, no ack is notified."""
        base = SpoutBase.ack.__get__(self.instance)
        self.collector.roots.notifies_acks = self.instance.ack != base
        return 0

    def open_range(self, long long start, long long end, bint batched):
        """The next turns read offsets [start, end); next_tuple's tuple ids are checked against them."""
        self.collector.bounded = 1
        self.collector.start = start
        self.collector.end = end
        self.collector.last_offset = -1
        self.collector.highest_offset = -1
        self.until_idle = False
        # Order: before the first verdict. The end of the range before has closed it, and a closed spout defers the
        # verdicts of what it emits again and again, to a next slice that a range does not have.
        self.closed = self.collector.closed = False
        self._begin(batched)
        self.exhausted = start >= end
        if self.resting:  # it has opened the range: the source answers
            self.revive()

    def open_slice(self, unsigned long long permits, bint until_idle=False):
        """The next turns make at most ``permits`` emits of a spout without offsets.

        ``until_idle``: the scheduler's run ends where all queues are empty and the spout has nothing.
        """
        self.collector.slice_end = self.collector.emits + permits
        self.until_idle = until_idle
        self.raises = 0
        self.closed = self.collector.closed = False
        cdef ps_root *root
        while self.collector.roots.settled > 0:  # these are younger
            ps_acker_keep_settled(&self.collector.deferred, ps_acker_take_settled(&self.collector.roots))
        while self.collector.deferred.settled > 0:
            root = ps_acker_take_settled(&self.collector.deferred)
            ps_acker_keep_settled(&self.collector.roots, root)
        self._begin(False)

    def _begin(self, bint batched):
        self.batched = batched
        self.rows = None
        self.call = self.instance.next_batch if batched else self.instance.next_tuple
        ps_call_resolve(&self.entry, <PyObject *>self.call)
        self.enter_compiled()
        self.exhausted = False

    cdef int enter_compiled(self) except -1:
        instance = self.instance
        if isinstance(instance, CompiledSpout) and self.call == CompiledSpout.next_tuple.__get__(instance):
            ps_call_compiled(&self.entry, call_next_tuple, <PyObject *>instance)
        return 0

    def close(self):
        """No further turn asks the spout, and no offset is in range, until the next open."""
        self.exhausted = self.closed = self.collector.closed = True
        self.rows = None
        self.collector.end = self.collector.start

    @property
    def at_work(self):
        """(None, the offset that it has emitted last), below 0 for none. Any thread may ask."""
        return None, self.collector.last_offset

    @property
    def emits(self):
        """Emits that succeeded."""
        return self.collector.emits

    @property
    def rooted(self):
        """Tuples that were emitted with a message id: trees."""
        return self.collector.rooted

    @property
    def complete(self):
        """From emit to ack: a LatencyHistogram of one tree in 64, as it is now."""
        cdef LatencyHistogram taken = LatencyHistogram()
        ps_histogram_copy(&taken.counted, &self.collector.complete)
        return taken

    @property
    def unsettled(self):
        """Trees without a verdict yet."""
        return self.collector.roots.open + self.discarded

    @property
    def unreported(self):
        """Trees of its range that have a verdict which it was not notified of."""
        return self.collector.roots.settled + self.collector.deferred.settled if self.collector.bounded else 0

    @property
    def tracks(self):
        """Whether the spout's tuples have trees (``topology.acker.executors``)."""
        return self.collector.tracks

    @tracks.setter
    def tracks(self, bint tracks):
        self.collector.tracks = tracks and self.collector.acker is not None

    @property
    def max_pending(self):
        """Open trees beyond which it is not asked (``topology.max.spout.pending``); 0: any number."""
        return self.collector.max_pending

    @max_pending.setter
    def max_pending(self, unsigned long long most):
        self.collector.max_pending = most

    @property
    def lowest_offset(self):
        """The lowest offset of a tree without a verdict, or with one that the spout was not notified of yet; -1: none
        is. Any thread may ask."""
        cdef ps_acker *acker = &self.collector.acker.acker
        cdef ps_root *root = self.collector.roots.first
        cdef long long lowest = self.replayed if self.replayed >= 0 else NO_OFFSET
        cdef uint64_t attempt
        while root is not NULL:
            lowest = min(lowest, root.offset)
            root = root.next
        for attempt in range(acker.oldest, acker.next):
            root = acker.window[attempt & acker.mask]
            if root is not NULL:
                lowest = min(lowest, root.offset)
        return -1 if lowest == NO_OFFSET else lowest

    def fail_trees(self, set ids not None):
        """Fails the open trees, of any spout of the worker, that were emitted with these message ids."""
        cdef ps_acker *acker = &self.collector.acker.acker
        cdef uint64_t attempt
        cdef ps_root *root
        for attempt in range(acker.oldest, acker.next):
            root = acker.window[attempt & acker.mask]
            if root is not NULL and root.id is not NULL and <object>root.id in ids:
                ps_acker_fail(acker, root, root.attempt, PS_ROOT_FAILED)

    @property
    def acks(self):
        """Trees that were acked, and whose spout was notified of it if it listens."""
        return self.notified_acks + self.collector.roots.acked + self.collector.untracked

    def discard(self):
        """Of the spout's trees nothing is kept, either."""
        SpoutReplay.discard(self)
        if self.collector.acker is not None:
            while ps_acker_take_settled(&self.collector.roots) or ps_acker_take_settled(&self.collector.deferred):
                pass
            self.discarded += self.collector.roots.open
            self.collector.roots.open = 0
            self.collector.acker.close()

    cdef bint awaits(self) noexcept:
        """Whether trees of its range have no verdict yet."""
        return self.collector.bounded and self.collector.roots.open > 0

    cdef bint at_most(self) noexcept:
        """Whether as many trees are open as may be (``topology.max.spout.pending``)."""
        return spout_is_at_most(self.collector)

    cdef long turn(self, long quota) except -1:
        cdef unsigned long long before = self.executed
        if self.out.late_emits:
            self.fail_late_emits()
        if self.held_back() or (self.exhausted and self.collector.roots.settled == 0):
            return 0
        if self.resting and self.collector.roots.settled == 0 and self.rests():
            return 0  # and its stall goes on
        cdef Acker acker = self.collector.acker
        cdef bint timed = acker is not None and acker.acker.timeout > 0
        if timed:
            acker.read_clock_now()
            ps_acker_begin_turn(&acker.acker, &self.collector.roots)
        self.times.begin_turn()
        try:
            return self.work(quota)
        finally:
            self.end_turn(self.executed - before)
            self.pending_high_mark = max(self.pending_high_mark, self.collector.roots.open)
            if timed:
                acker.read_clock_now()
                ps_acker_end_turn(&acker.acker, &self.collector.roots)

    cdef long work(self, long quota) except -1:
        cdef long notified = 0
        cdef long asked
        cdef uint64_t until = ps_coarse_nanos() + self.turn_time_limit if self.turn_time_limit > 0 else 0
        self.end_spent_slice()
        self.skipped += 1
        if self.collector.roots.settled > 0 and (self.skipped > self.skips or self.exhausted):
            self.skipped = 0
            notified = self.notify_verdicts()
            self.end_spent_slice()
            self.times.end_prelude()
        if self.pending.count == 0 and not self.exhausted:
            if self.at_most():
                self.skipped = self.skips
                self.times.stall(MAX_SPOUT_PENDING)
            elif self.resting and self.rests():
                self.skipped = self.skips
                self.times.stall(SOURCE_UNAVAILABLE)
            else:
                set_current_collector(self.collector)
                asked = self.ask_batch(quota) if self.batched else self.ask(quota, until)
                if asked == 0:
                    self.skipped = self.skips  # it has time to listen
                notified += asked
        self.flush()
        return notified

    cdef long ask(self, long quota, uint64_t until) except -1:
        """At most ``quota`` calls of next_tuple, stopping at the first that leaves an emit pending or emits nothing."""
        cdef long calls = 0
        cdef unsigned long long before
        cdef PyObject *answer
        cdef TurnTimes times = self.times
        quota = min(quota, self.most_calls)
        while calls < quota:
            before = self.collector.emits
            answer = ps_call_none(&self.entry)
            calls += 1
            self.executed += 1  # hot
            if answer is NULL:
                if self.caught("next_tuple"):
                    if self.collector.emits == before:
                        calls -= 1
                        self.executed -= 1
                    self.end_spent_slice()
                    if calls == 0 and not self.exhausted:
                        times.stall(SOURCE_UNAVAILABLE)
                    break
                self.raises += 1
                if self.raises <= MOST_RAISES:
                    self.end_spent_slice()
                    break  # it is asked again: a spout that has raised may have more
            else:
                self.raises = 0
                if self.resting:  # hot
                    self.revive()
                if answer is not <PyObject *>None and self.collector.emits == before:  # hot
                    self.look_at(answer)
                ps_decref(answer)
                if answer is ps_false:
                    self.exhausted = True
                    break
            if self.collector.emits == before:
                calls -= 1
                self.executed -= 1
                if self.collector.bounded and self.collector.highest_offset == self.collector.end - 1:
                    self.exhausted = True
                elif calls == 0:
                    times.stall(SOURCE_UNAVAILABLE if self.is_out() else NOTHING_TO_EMIT)
                break
            if times.singly:  # hot
                end_call(times)  # hot
            self.end_spent_slice()
            if self.exhausted:
                break
            if self.pending.count > 0 or past_deadline(self, until, calls) or self.at_most():
                break
        return calls

    cdef bint is_busy(self, str method, object error) except -1:
        """Whether the spout has said so: it goes on behind a pause. What the call has emitted stays emitted."""
        if self.outage is None or not self.outage.passes(error):
            return False
        self.outage.note(method, error)
        self.resting = True
        return True

    cdef bint is_out(self) except -1:
        """Whether the source is unavailable, also if a journal rather than this executor asks it."""
        return self.outage is not None and self.outage.is_on

    cdef bint rests(self) except -1:
        """Whether the pause goes on."""
        return self.outage.rests()

    cdef int revive(self) except -1:
        """The source has answered."""
        self.resting = False
        self.outage.end()
        return 0

    def pause(self):
        """Blocking, between two runs: waits until the source may be asked again."""
        self.stall_begin(SOURCE_UNAVAILABLE)
        try:
            self.outage.sleep()
        finally:
            self.stall_end()

    cdef int look_at(self, PyObject *answer) except -1:
        """At what next_tuple has returned without an emit."""
        error = self.collector.lost_by("next_tuple", <object>answer)
        if error is not None:
            ps_decref(answer)
            raise ComponentFailed(self.component, self.task, "next_tuple", None, self.collector.last_offset) from error
        return 0

    cdef int end_spent_slice(self) noexcept:
        """A slice that has made all its emits is over; threads of the spout's own make some of them at any time."""
        if not self.collector.bounded and not self.exhausted and spout_is_spent(self.collector):
            self.exhausted = self.closed = self.collector.closed = True
        return 0

    cdef long notify_verdicts(self) except -1:
        """Tells the spout the verdicts of its trees, oldest first, until one of its answers finds no room.

        Once its slice was closed by deadline or permits, what it emits in answer is new: its acks wait for the next
        slice, and so do its fails from the ``MOST_REPLAYS``th replay on, or a spout that always answers would never let
        the slice end.
        """
        cdef SpoutOutputCollector collector = self.collector
        cdef ps_root *root
        cdef long notified = 0
        # Order: those of now; what an answer settles at once comes with the next turn.
        cdef uint64_t left = collector.roots.settled
        set_current_collector(collector)
        try:
            while left > 0:
                left -= 1
                root = ps_acker_take_settled(&collector.roots)
                if root.verdict == PS_ROOT_EMIT_RAISED:
                    release_tree(self.collector, root)
                    continue
                if self.closed and root.generation > (0 if root.verdict == PS_ROOT_ACKED else MOST_REPLAYS):
                    ps_acker_keep_settled(&collector.deferred, root)
                    continue
                notified += 1
                collector.generation = root.generation + 1 if self.closed else 0
                self.on_verdict(root)
                if self.pending.count > 0:
                    break
        finally:
            collector.generation = 0
        return notified

    cdef int on_verdict(self, ps_root *root) except -1:
        """The verdict of one tree. Its slot is free before any code of the spout's runs."""
        cdef object tup_id = <object>root.id
        if root.verdict == PS_ROOT_ACKED:
            self.notified_acks += 1
            release_tree(self.collector, root)
            if self.collector.roots.notifies_acks:
                self.invoke("ack", tup_id)
            return 0
        if root.verdict == PS_ROOT_RETRY_DUE:
            return self.replay(root)
        self.fails += 1
        if root.verdict == PS_ROOT_TIMED_OUT:
            self.timed_out += 1
        if self.collector.bounded:
            return self.replay(root)
        if self.retries is not None:
            self.retries.blame(self.blame_of(root))
        release_tree(self.collector, root)
        self.invoke("fail", tup_id)
        return 0

    cdef int invoke(self, str method, object tup_id) except -1:
        try:
            getattr(self.instance, method)(tup_id)
        except ComponentFailed:
            raise  # it was given up, and with it the run
        except Exception as error:
            if self.exits:
                raise ComponentFailed(self.component, self.task, method, None, -1) from error
            self.survive(method, None, -1, error)
        except BaseException as error:
            raise self.interrupted(method, None, -1, error)
        return 0

    cdef bint caught(self, str method) except -1:
        """With an exception of the spout's set. A range that cannot be read wholly always fails the run. True: the
        source is busy."""
        try:
            reraise()
        except ComponentFailed:
            raise  # of a journal, which asks the user's spout
        except Exception as error:
            if self.is_busy(method, error):
                return True
            if self.exits or self.collector.bounded:
                raise ComponentFailed(self.component, self.task, method, None, self.collector.last_offset) from error
            self.survive(method, None, -1, error)
        except BaseException as error:
            raise self.interrupted(method, None, self.collector.last_offset, error)
        return False

    cdef long ask_batch(self, long quota) except -1:
        """Sends a slice of the batch that was not wholly sent, or else asks for the next one."""
        try:
            if self.rows is None and not self.next_batch():
                return 0
            if self.rows is not None:
                self.send_slice(quota)
        except ComponentFailed:
            raise
        except Exception as error:
            raise ComponentFailed(self.component, self.task, "next_batch", None, -1) from error
        except BaseException as error:
            raise self.interrupted("next_batch", None, -1, error)
        return not self.exhausted

    cdef bint next_batch(self) except -1:
        """Asks for a batch: it goes to the output as it is, or is kept to be sent to bolts. Whether there was an answer
        other than that the spout waits for its world."""
        cdef StreamRouter router = self.collector.router_of("default")
        try:
            batch = self.call()
        except Exception as error:
            if not self.is_busy("next_batch", error):
                raise
            self.times.stall(SOURCE_UNAVAILABLE)
            return False
        if self.resting:
            self.revive()
        if batch is None:
            self.exhausted = True
            return True
        if not isinstance(batch, pa.RecordBatch):
            raise coded(
                TypeError,
                "PYSTORM_INVALID_RETURN_VALUE",
                f"next_batch() returns a pyarrow.RecordBatch, None at the end; Given: {shown(batch)}",
            )
        if batch.num_rows == 0 and getattr(self.instance, "_pystorm_waits", False):
            self.times.stall(NOTHING_TO_EMIT)
            return False
        self.executed += 1
        if router.row_sink is not None and router.capture is None and not router.routes:
            router.row_sink.add_batch(batch)
            router.emitted += batch.num_rows
        elif batch.num_rows > 0:
            self.rows = slice_of(batch)
            self.rows.of_spout = True
            self.sent = 0
        return True

    cdef int send_slice(self, long quota) except -1:
        """The next rows of the batch. At most ``quota`` if a bolt takes them one by one, in trees of ``tree_rows``: for
        one that fails all rows of its tree are sent again."""
        cdef StreamRouter router = self.collector.router_of("default")
        cdef long left = quota
        cdef Py_ssize_t count
        self.tree_rows = min(self.tree_rows, self.most_tree_rows)
        while left > 0 and self.rows is not None and self.pending.count == 0 and not self.at_most():
            count = min(self.rows.count - self.sent, router.most_rows(self.rows, min(left, self.tree_rows)))
            self.collector.last_offset = SOMEWHERE
            self.collector.emit_rows(self.rows.part(self.sent, count), None, None, 1)
            self.sent += count
            left -= count
            if self.sent == self.rows.count:
                self.rows = None
            if self.tree_rows < self.most_tree_rows:
                self.unfailed += count
                if self.unfailed >= ROWS_TO_DOUBLE:
                    self.tree_rows, self.unfailed = min(2 * self.tree_rows, self.most_tree_rows), 0
        return 0

    cdef bint over(self) except -1:
        """Whether the run need not wait for this spout, which has just had nothing to emit."""
        if self.exhausted:
            return True
        if self.resting:
            return False
        # A spout of the test kit may be in a pause and say so.
        return self.until_idle and not getattr(self.instance, "_pystorm_waits", False)

    cdef bint idle(self) noexcept:
        return self.pending.count == 0 and self.collector.roots.settled == 0 and not self.is_late()
