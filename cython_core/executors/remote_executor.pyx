"""The executor of a task that runs in another process: its turn sends tuples there, and takes what has come of them.

    receive queue ─► TUPLES, BATCH ─► ring ─► the child's worker: LinkSpout ─► the task ─► LinkBolt
                     while sent − taken                                     │
                     ≤ the child's queue                                    ▼
    routing, acker ◄─ emits, then verdicts ◄─ ring ◄──────────────────── WORK

The receive queue is the transfer queue, and a frame the one level of batching: a turn takes what is there, at most its
quota, and writes one frame. Serialising is work of this turn, never of an emit. A tuple that is away waits, as one in a
batch of a batching bolt does: its time runs where it is worked on.

Back-pressure: ``taken`` is a word in shared memory that the child's task sets, and a word cannot get lost. Without
credit no tuple is taken, the receive queue fills, and the task's own producers wait as they do for any bolt; other
tasks, those in the same child included, have links of their own and go on.

``link`` (worker/processes/task_link.py) has the end of the rings, the child's process and the way values become bytes.

Threading law: as every executor; the link belongs to the same thread.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint64_t

from cython_core.acking.acker cimport PS_ROOT_FAILED_WITH_GROUP, anchor_t, no_anchor, ps_acker_fail
from cython_core.executors.bolt_executor cimport BoltExecutor, WaitingExecutor
from cython_core.executors.executor cimport ps_decref
from cython_core.queues.queues cimport PendingEmits, ReceiveQueue
from cython_core.routing.batch_slice cimport SOMEWHERE, BatchSlice, slice_of
from cython_core.routing.output_collector cimport anchor_to_tuple, set_current_collector
from cython_core.routing.stream_router cimport StreamRouter
from cython_core.timing.turn_times cimport NOT_STALLED, PROCESS_BUSY, PROCESS_FULL, StallReason, ps_stopwatch_nanos
from cython_core.tuples.tuple cimport Tuple, TupleBatch, TupleSource, gather, is_lost, take, take_gathered

from collections import deque

from cython_core.executors.executor import ComponentFailed
from cython_core.links.frame_kinds import Kind

cdef double NEVER = float("inf")

cdef unsigned int TUPLES = Kind.TUPLES
cdef unsigned int CANCEL = Kind.CANCEL
cdef unsigned int BATCH = Kind.BATCH
cdef unsigned int TICK = Kind.TICK
cdef unsigned int BEGIN = Kind.BEGIN
cdef unsigned int END = Kind.END
cdef unsigned int HELD = Kind.HELD
cdef unsigned int KEYS = Kind.KEYS
cdef unsigned int LEASE = Kind.LEASE
cdef unsigned int WORK = Kind.WORK
cdef unsigned int FAILED = Kind.FAILED
cdef unsigned int STARTED = Kind.STARTED

# Batches that the child has not taken, however many rows they have. More: memory for them, in the ring and the child.
# One: it waits for the next one each time.
cdef Py_ssize_t BATCHES_AHEAD = 3

# Frames whose times of sending are kept before old ones are dropped. More: memory. Fewer: a longer frame's bookkeeping.
cdef Py_ssize_t MOST_TIMES = 64


@cython.final
cdef class RemoteExecutor(WaitingExecutor):
    """As BoltExecutor. ``instance``: stands for the bolt, whose methods are not called here. ``credit``: tuples that
    the child's receive queue holds; ``by_batch``: batches go there as they are, else row by row. ``loop``: an
    EventLoop."""

    def __init__(self, str component not None, int task, instance, PendingEmits pending not None, dict routers not None,
                 ReceiveQueue queue not None, tick_frequency=None, tuple readers=(), *, loop, link,
                 unsigned long long credit=1024, bint by_batch=False):
        super().__init__(component, task, instance, pending, routers, queue, tick_frequency, readers)
        self.loop = loop
        self.link = link
        self.end = link.end
        self.pack = link.pack
        self.unpack = link.unpack
        self.sends_keys = link.sends_keys
        self.places = {}
        self.away = {}
        self.cancelled = set()
        self.outgoing = []
        self.times_sent = deque()
        self.batch_ends = deque()
        self.credit = max(credit, <unsigned long long>1)
        self.by_batch = queue.takes_batches = by_batch

    def lease(self, place):
        """Between two runs, and before the first one: tells the child where permits of rate limits come from, as a
        PermitPlace; None: from itself."""
        self.post(LEASE, place)
        self.end.ring()

    def start(self, dict conf, dict context):
        """Waits until the child has initialised its bolt. Raises ComponentFailed if that has raised, or the child has
        ended."""
        self.loop.hold(self)
        self.link.attach(self.loop)
        while not self.started:
            if self.serve() == 0 and not self.started:
                self.loop.wait(None)

    def clean_up(self):
        """Has the child call the bolt's ``cleanup`` and end."""
        try:
            if not self.ended:
                self.ended = True
                self.post(END, None)
                self.link.finish(self.send_waiting)
        finally:
            self.link.detach()
            self.loop.release(self)

    def whose(self, error):
        """No callback of the loop is the component's."""
        return None

    def ready(self):
        BoltExecutor.ready(self)
        self.takes_many = False
        self.queue.takes_columns = False
        self.has_tick = self.started and self.remote_has_tick

    def begin(self, double now):
        BoltExecutor.begin(self, now)
        self.tick_timer.stop()  # the child has its own
        self.post(BEGIN, None)
        self.end.ring()

    def discard(self):
        self.away.clear()
        self.cancelled.clear()
        self.times_sent.clear()
        BoltExecutor.discard(self)

    @property
    def at_work(self):
        """(Tuple, offset) that has been away for longest; (None, -1): none is. Any thread may ask."""
        cdef Tuple tup
        for tup in list(self.away.values()):
            return tup, tup.offset
        return None, -1

    @property
    def oldest_away_seconds(self):
        """For how long the tuple ``at_work`` has been away; 0.0: none is. Any thread may ask."""
        cdef uint64_t since = 0
        oldest = next(iter(list(self.away)), None)
        if oldest is None:
            return 0.0
        for first, nanos in list(self.times_sent):
            if first > oldest:
                break
            since = nanos
        return max(0, <int64_t>(ps_stopwatch_nanos() - since)) / 1e9 if since > 0 else 0.0

    @property
    def tuples_unread(self):
        """Tuples that were sent and that the bolt has not begun yet: at most ``credit``."""
        return max(0, self.not_taken())

    @property
    def tuples_away(self):
        """Tuples that were sent and have no verdict yet."""
        return len(self.away)

    @property
    def has_started(self):
        """Whether the child has initialised its bolt."""
        return self.started

    def some_away(self, Py_ssize_t most):
        """At most so many of these, oldest first."""
        return list(self.away.values())[:most]

    cdef double requests_due(self) except? -1:
        return <double>self.link.next_due()

    cdef bint idle(self) noexcept:
        return self.in_flight == 0 and len(self.outgoing) == 0 and BoltExecutor.idle(self)

    cdef bint waits(self) noexcept:
        """1 where the child has work, and nothing but what comes of it gives the parent anything to do."""
        return (
            self.in_flight > 0
            and self.pending.count == 0
            and not self.end.has_frame()
            and (self.end.is_writing() or self.room() <= 0 or self.empty())
        )

    cdef bint listens(self) noexcept:
        return self.in_flight > 0 or len(self.away) > 0

    cdef StallReason stalled_by(self) noexcept:
        """Its tuples wait for room in the process's queue, or it has none, and the process works on those that it has
        got."""
        if self.pending.count > 0:
            return NOT_STALLED
        if not self.empty() and (self.room() <= 0 or self.end.is_writing()):
            return PROCESS_FULL
        return PROCESS_BUSY if self.in_flight > 0 else NOT_STALLED

    cdef long not_taken(self) noexcept:
        """Tuples that were sent and that the child's bolt has not taken."""
        return <long>(self.sent - self.marks - self.end.taken_now())

    cdef long room(self) noexcept:
        """Tuples that may be sent now, or at least one batch."""
        cdef long left = <long>self.credit - self.not_taken()
        cdef uint64_t taken
        if left > 0 or not self.by_batch:
            return left
        taken = self.end.taken_now()
        while len(self.batch_ends) > 0 and self.batch_ends[0] <= taken:
            self.batch_ends.popleft()
        return 0 if len(self.batch_ends) == 0 or len(self.batch_ends) >= BATCHES_AHEAD else 1

    cdef int note_under_way(self) noexcept:
        self.in_flight = <long>(self.sent - self.settled)
        return 0

    cdef long turn(self, long quota) except -1:
        cdef bint held_back = self.held_back()
        cdef long calls = 0
        cdef StallReason reason
        if self.collector.failed is not None:
            self.raise_tuple_failed("fail", None)
        if self.out.late_emits:
            self.fail_late_emits()
        if held_back:
            return 0
        self.times.begin_turn()
        try:
            self.cancel_lost()  # order: before the child goes on
            calls = self.serve()
            self.cancel_lost()
            if self.pending.count == 0:
                calls += self.consume(quota)
            self.flush()
            reason = self.stalled_by() if calls == 0 else NOT_STALLED
            if reason != NOT_STALLED:
                self.times.stall(reason)
            return calls
        finally:
            self.end_turn(0)  # the calls are the child's

    cdef long force_feed(self, long quota) except -1:
        """Breaks a cycle of full queues: takes what has come, or sends, although emits are pending."""
        cdef long calls = self.serve_one()
        return calls if calls > 0 else self.consume(quota)

    cdef long serve_one(self) except -1:
        cdef long moved
        frame = self.end.read()
        if frame is None:
            return 0
        moved = self.take_frame(frame[0], frame[1])
        self.end.ring_for_room()
        return moved

    cdef long consume(self, long quota) except -1:
        """Sends at most ``quota`` tuples, as many as the child has room for."""
        cdef long calls = 0
        cdef long sent = 0
        cdef void *item
        cdef Tuple tup
        cdef object payload
        cdef list tups, places, values
        if not self.send_waiting():
            return 0
        quota = min(quota, self.room())
        if quota <= 0 or self.empty():
            return 0
        tups, places, values = [], [], []
        self.begin_taking()
        while sent < quota:
            item = self.poll_elsewhere()
            if item is NULL:
                break
            if not take(<Tuple>item):
                calls += 1
                self.skip(<PyObject *>item)
                continue
            payload = (<Tuple>item).payload
            if self.by_batch and isinstance(payload, BatchSlice):
                tup = <Tuple>item
                ps_decref(<PyObject *>item)
                if tups:  # order: what has come before goes before
                    self.send_tuples(tups, places, values)
                    tups, places, values = [], [], []
                self.send_batch(tup, <BatchSlice>payload)
                sent += <long>(<BatchSlice>payload).count
                continue
            if isinstance(payload, TupleBatch):
                self.open_rows(<PyObject *>item)
                continue
            tup = <Tuple>item
            ps_decref(<PyObject *>item)
            gather(tup)
            sent += 1
            tups.append(tup)
            places.append(self.place_of(tup.source))
            values.append(payload if type(payload) is tuple else tuple(payload))
        if tups:
            self.send_tuples(tups, places, values)
        return calls + sent

    cdef int cancel_lost(self) except -1:
        """Tells the child of tuples whose trees have failed meanwhile: nothing that comes of them counts, and what a
        batch of it makes of them and of others would fail these, too."""
        cdef unsigned long long failures
        cdef Tuple tup
        if self.collector.acker is None:
            return 0
        failures = self.collector.acker.acker.failures
        if failures == self.failures:
            return 0
        self.failures = failures
        lost = [number for number, tup in self.away.items() if is_lost(tup) and number not in self.cancelled]
        if lost:
            self.cancelled.update(lost)
            self.post(CANCEL, lost)
            self.end.ring()
        return 0

    cdef object place_of(self, TupleSource source):
        place = self.places.get(source)
        if place is None:
            place = self.places[source] = self.link.place_of(source.component, source.stream, source.task)
        return place

    cdef int send_tuples(self, list tups, list places, list values) except -1:
        cdef unsigned long long first = self.sent
        cdef object place = places[0]
        try:
            parts = self.pack((first, place if places.count(place) == len(places) else places, values))
        except Exception as error:
            return self.send_singly(tups, places, values, error)
        self.begin_sending(tups)
        for tup in tups:
            self.away[self.sent] = tup
            self.sent += 1
        return self.send_frame(TUPLES, parts, len(tups))

    cdef int send_frame(self, unsigned int kind, list parts, Py_ssize_t rows) except -1:
        self.executed += <unsigned long long>rows
        self.note_under_way()
        self.away_high_mark = max(self.away_high_mark, <long>len(self.away))
        self.unread_high_mark = max(self.unread_high_mark, self.not_taken())
        self.outgoing.append((kind, parts))
        self.send_waiting()
        self.end.ring()
        return 0

    cdef int begin_sending(self, list tups) except -1:
        """Before the frame of these tuples: keeps when they are sent, by the clock's last reading, at the begin of the
        turn, and sends their keys, if the bolt may ask for them."""
        cdef object oldest
        if len(self.times_sent) > MOST_TIMES:
            oldest = next(iter(self.away), self.sent)
            while len(self.times_sent) > 1 and self.times_sent[1][0] <= oldest:
                self.times_sent.popleft()
        self.times_sent.append((self.sent, self.times.stopwatch.watch.since))
        if self.sends_keys:
            self.outgoing.append((KEYS, self.link.keys_of(self.sent, tups, self.instance._pystorm_place)))
        return 0

    cdef int send_batch(self, Tuple tup, BatchSlice rows) except -1:
        """All rows as one tuple, which has the numbers of all."""
        cdef unsigned long long first = self.sent
        gather(tup)
        try:
            parts = self.pack((first, self.place_of(tup.source), self.link.carried(rows.batch())))
        except Exception as error:
            self.release_at(self.place, rows)
            return self.fail_unsent(tup, rows, error)
        self.release_at(self.place, rows)
        self.begin_sending([tup])
        self.away[first] = tup
        self.sent += <unsigned long long>rows.count
        self.batch_ends.append(self.sent - self.marks)
        return self.send_frame(BATCH, parts, rows.count)

    cdef int send_singly(self, list tups, list places, list values, object error) except -1:
        """One of these has a value that cannot be carried: it fails as if the bolt had raised for it."""
        cdef Py_ssize_t i
        if len(tups) > 1:
            for i in range(len(tups)):
                self.send_tuples(tups[i:i + 1], places[i:i + 1], values[i:i + 1])
            return 0
        self.executed += 1
        return self.fail_unsent(<Tuple>tups[0], values[0], error)

    cdef int fail_unsent(self, Tuple tup, object values, object error) except -1:
        set_current_collector(self.collector)
        self.collector.current = tup
        take_gathered(tup)
        self.fail_current("process", self.link.not_carried(values, error))
        self.collector.current = None
        return 0

    cdef int post(self, unsigned int kind, object value) except -1:
        self.outgoing.append((kind, self.pack(value)))
        self.send_waiting()
        return 0

    cpdef bint send_waiting(self) except -1:
        """Writes what waits for the ring. Whether all of it is there."""
        if not self.end.flush():
            return False
        while self.outgoing:
            kind, parts = self.outgoing.pop(0)
            if not self.end.write(kind, parts):
                return False
        return True

    cdef int mark(self, unsigned int kind) except -1:
        """Sends a mark that has a number, and is under way until the child has nothing to do behind it."""
        self.cancel_lost()
        self.post(kind, self.sent)
        self.sent += 1
        self.marks += 1
        self.note_under_way()
        self.end.ring()
        return 0

    def wants_final_tick(self, unsigned long long emits):
        if not self.final_ticked:  # also of a bolt without ticks: the counts of the micro-batch come with the answer
            return True
        if self.remote_batching and self.away:
            return self.executed != self.executed_at_final_tick
        return self.has_tick and self.emits_at_final_tick != emits

    def final_tick(self, unsigned long long emits):
        """Tells the child that its micro-batch is at its end. What comes of that comes before it is said to be done."""
        self.emits_at_final_tick = emits
        self.final_ticked = True
        self.executed_at_final_tick = self.executed
        self.mark(TICK)

    def holds_batches(self):
        return self.remote_batching and len(self.away) > 0

    def process_held(self, unsigned long long emits):
        self.emits_at_held_tick = emits
        self.executed_at_kept_batches = self.executed
        self.mark(HELD)

    cdef long serve(self) except -1:
        """Takes what has come up, as long as nothing that came of it waits for room. How many emits and verdicts."""
        cdef long moved = self.link.pump()
        cdef bint read = False
        set_current_collector(self.collector)
        try:
            while self.pending.count == 0:
                frame = self.end.read()
                if frame is None:
                    break
                read = True
                moved += self.take_frame(frame[0], frame[1])
        finally:
            self.collector.current = None
        if read:
            self.end.ring_for_room()
        elif (self.in_flight > 0 or not self.started) and not self.ended and self.link.look():
            self.ended = True
            self.link.raise_ended(self)
        return moved

    cdef long take_frame(self, unsigned int kind, object data) except -1:
        if kind == WORK:
            return self.take_work(<tuple>self.unpack(data))
        if kind == STARTED:
            self.remote_has_tick, self.remote_batching = self.unpack(data)
            self.started = True
            self.has_tick = self.remote_has_tick
            return 1
        if kind == FAILED:
            whose, method, packed = self.unpack(data)
            self.ended = True
            self.broken(whose, method, packed)
        return 0

    cdef long take_work(self, tuple work) except -1:
        cdef list acks = <list>work[1]
        cdef list fails = <list>work[2]
        cdef unsigned long long number, last
        cdef long moved = self.emit_all(<tuple>work[0]) + len(fails)
        cdef Py_ssize_t i
        for numbers, method, packed, retries in <list>work[3]:
            self.reported_up(<tuple>numbers, method, packed, retries)
        for i in range(0, len(acks), 2):
            last = acks[i + 1]
            number = acks[i]
            moved += <long>(last - number) + 1
            while number <= last:
                self.acked(number)
                number += 1
        for number, method, packed, rows in fails:
            self.failed_up(number, <str>method, packed, rows)
        for number in <list>work[6]:
            self.lost_up(number)
        if work[4] > self.settled:
            self.settled = work[4]
            self.note_under_way()
            moved += 1
        if work[5] is not None:
            self.count(<tuple>work[5])
        if self.collector.failed is not None:
            self.raise_tuple_failed("fail", None)
        return moved

    cdef long emit_all(self, tuple emits) except -1:
        """(Stream of all or of each, numbers, values): columns. How many."""
        cdef object streams = emits[0]
        cdef list numbers = <list>emits[1]
        cdef list values = <list>emits[2]
        cdef Py_ssize_t i
        cdef bint of_one = isinstance(streams, str)
        for i in range(len(numbers)):
            self.emit_up(streams if of_one else (<list>streams)[i], numbers[i], values[i])
        self.last_numbers = self.last_roots = self.last_tup = None
        return len(numbers)

    cdef int count(self, tuple counts) except -1:
        """What the child has counted since it told of it last: nanoseconds in the bolt, its latencies (as of
        ``LatencyHistogram.since``), ticks, verdicts on tuples that had one, metrics and look-ups in caches so far."""
        busy, latencies, ticks, duplicates, metrics, lookups = counts
        self.times.busy += <uint64_t>busy
        self.process_busy += <uint64_t>busy
        self.times.latency.add_since(*latencies)
        self.ticks += <unsigned long long>ticks
        self.collector.duplicate_verdicts += <unsigned long long>duplicates
        if metrics:
            self.instance._pystorm_metrics.update(metrics)
        if lookups:
            self.instance._pystorm_lookups.report(lookups)
        return 0

    cdef int emit_up(self, str stream, object numbers, object values) except -1:
        """``numbers``: of the tuples that it is anchored to, one or a tuple of them."""
        cdef anchor_t anchor = no_anchor(-1)
        cdef object _alive = None
        cdef Tuple tup = None
        if isinstance(numbers, int):
            tup = self.away.get(numbers)
            if tup is None:  # it has failed, and that came first
                return 0
            anchor_to_tuple(&anchor, tup)
        elif numbers and numbers is self.last_numbers:  # of the same batch: pickle has kept that they are one object
            anchor, _alive, tup = self.last_anchor, self.last_roots, self.last_tup
        elif numbers:
            tups = [each for each in [self.away.get(number) for number in numbers] if each is not None]
            if len(tups) < len(numbers):
                return self.fail_with_group(tups)
            _alive = self.collector.anchor_to(tups, &anchor, False)
            if self.by_batch and anchor.offset >= 0:  # of rows that happened to be gathered: that of another one
                anchor.offset = SOMEWHERE
            tup = <Tuple>tups[0]
            self.last_numbers, self.last_anchor, self.last_roots, self.last_tup = numbers, anchor, _alive, tup
        self.collector.current = tup
        try:
            if type(values) is tuple:
                self.collector.send(values, stream, &anchor, None)
            else:
                self.emit_batch_up(stream, slice_of(values), &anchor)
        except Exception as error:
            self.fail_current("process", error)
        return 0

    cdef int emit_batch_up(self, str stream, BatchSlice rows, const anchor_t *anchor) except -1:
        cdef StreamRouter router = self.collector.router_of(stream)
        router.route_batch(rows, anchor, None)
        self.collector.emits += <unsigned long long>rows.count
        return 0

    cdef int lost_up(self, unsigned long long number) except -1:
        """The bolt has acked it, and what was made of it and of another one is lost."""
        cdef Tuple tup = self.away.get(number)
        if tup is None:
            return 0
        if not (self.cancelled and number in self.cancelled):
            self.fail_with_group([tup])
        return self.acked(number)

    cdef int fail_with_group(self, list tups) except -1:
        """What was made of these and of another tuple is lost, as the tree of that one has failed."""
        cdef Tuple tup
        for tup in tups:
            if tup.root is not NULL:
                ps_acker_fail(&tup.source.acker.acker, tup.root, tup.attempt, PS_ROOT_FAILED_WITH_GROUP)
            elif tup.roots is not None:
                tup.roots.fail_with_group()
        return 0

    cdef int acked(self, unsigned long long number) except -1:
        cdef Tuple tup = self.away.pop(number, None)
        if tup is not None:
            take_gathered(tup)
            if isinstance(tup.payload, BatchSlice):
                self.collector.settle_batch([tup], None)
            else:
                self.collector.ack(tup)
            if self.cancelled:
                self.cancelled.discard(number)
        return 0

    cdef int failed_up(self, unsigned long long number, str method, object packed, object rows) except -1:
        """``method``: of the component, "" if its time was over. ``rows``: of a batch that has failed in part, those
        that have: (their places, their exception) for each, and whether the others are acked; else None."""
        cdef Tuple tup = self.away.pop(number, None)
        cdef object error
        if tup is None:
            return 0
        take_gathered(tup)
        if self.cancelled and number in self.cancelled:
            self.cancelled.discard(number)
            return 0
        if method == "":
            return self.collector.time_out(tup)
        error = None if packed is None else self.link.unpack_error(packed)
        if rows is None:
            self.collector.fail(tup, method, error)
            if self.collector.failed is not None:
                self.raise_tuple_failed(method, error)
            return 0
        for places, each in rows[0]:
            error = None if each is None else self.link.unpack_error(each)
            mask = [False] * (<BatchSlice>tup.payload).count
            for place in places:
                mask[place] = True
            self.collector.settle_batch([tup], mask, method, error)
        if rows[1]:
            self.collector.settle_batch([tup], None)
        return 0

    cdef int reported_up(self, tuple numbers, str method, object packed, bint retries) except -1:
        """An exception that lets the run go on. The tuple's verdict, if it is to fail, comes by itself."""
        cdef Tuple tup = self.away.get(numbers[0]) if numbers else None
        failure = ComponentFailed(self.component, self.task, method, tup, -1 if tup is None else tup.offset)
        failure.__cause__ = self.link.unpack_error(packed)
        self.errors += 1
        self.reported.retries = retries
        self.reported.append(failure)
        return 0

    cdef int broken(self, object whose, str method, object packed) except -1:
        """The component's exception ends the run."""
        cdef Tuple tup = self.away_like(whose)
        error = None if packed is None else self.link.unpack_error(packed)
        self.errors += 1
        raise ComponentFailed(
            self.component, self.task, method, tup, -1 if tup is None else tup.offset
        ) from error

    cdef Tuple away_like(self, object whose):
        """The tuple of this number, or the one of this source and these values that has been away for longest; None: no
        such one is."""
        cdef Tuple tup
        if whose is None:
            return None
        if isinstance(whose, int):
            return self.away.get(whose)
        component, stream, values = whose  # an int: of a batch of so many rows
        for tup in self.away.values():
            if (tup.source.component, tup.source.stream) == (component, stream) and (
                (<BatchSlice>tup.payload).count if isinstance(tup.payload, BatchSlice) else tuple(tup.payload)
            ) == values:
                return tup
        return None
