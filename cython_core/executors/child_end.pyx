"""The child's end of a link: what has come down, the spout that emits it, and what is to go up.

    frames ─► Inbox ─► Arrivals "lines.default", task 3 ─► LinkSpoutBase ─► the component's task
                    ─► Arrivals "prices.late", task 7   ─► LinkSpoutBase ─►
    frame  ◄─ Work ◄─ acks and fails of these spouts, emits of the task

Threading law: all of a link by one thread.
"""

cimport cython
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from libc.stdint cimport uint64_t

from cython_core.compiled.spout cimport MORE, CompiledSpout
from cython_core.links.link_end cimport LinkEnd
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.tuples.tuple cimport Tuple, tree_ids

from collections import deque

from cython_core.links.frame_kinds import Kind

cdef unsigned int TUPLES = Kind.TUPLES
cdef unsigned int CANCEL = Kind.CANCEL
cdef unsigned int BATCH = Kind.BATCH
cdef unsigned int KEYS = Kind.KEYS


@cython.final
cdef class Arrivals:
    """``Arrivals()``: the tuples of one source that have come and were not emitted yet, oldest first."""

    def __init__(self):
        self.later = deque()

    cdef bint open_next(self) except -1:
        """Whether there is one: then it is row ``at``."""
        if self.rows is not None and self.at < self.end:
            return True
        if not self.later:
            self.rows = None
            return False
        numbers, self.rows = self.later.popleft()
        self.at, self.end = 0, PyList_GET_SIZE(self.rows)
        self.numbers = numbers if isinstance(numbers, list) else None
        self.first = 0 if self.numbers is not None else numbers
        return self.end > 0

    def waiting(self):
        """The numbers of all that wait; of a batch its first one."""
        cdef set found = set()
        if self.rows is not None and self.numbers is None:
            found.update(range(self.first + self.at, self.first + self.end))
        elif self.rows is not None:
            found.update(self.numbers[self.at:])
        for numbers, rows in self.later:
            found.update(numbers if isinstance(numbers, list) else range(numbers, numbers + len(rows)))
        return found


@cython.final
cdef class Inbox:
    """``Inbox(end, sources, unpack, cancel, keys)`` reads tuples for the spouts of a link.

    ``sources``: component, stream and task of the tuples' producers, in the parent's order; ``unpack``: makes values of
    a frame's bytes; ``cancel``: called with numbers whose trees have failed in the parent; ``keys``: gets the keys of
    input rows (worker/processes/keys.py).

    ``mark``: kind and number of the mark that is next, None for none; ``through``: all numbers below it have come;
    ``given``: rows that went on to the bolt, or did not have to, as their trees had failed.
    """

    def __init__(self, LinkEnd end not None, list sources not None, unpack, cancel, keys=None):
        self.end = end
        self.unpack = unpack
        self.cancel = cancel
        self.keys = keys
        self.of_source = {source: Arrivals() for source in sources}
        self.of_place = [self.of_source[source] for source in sources]
        self.lost = set()  # of those that wait: their trees have failed meanwhile

    cdef object next_of(self, Arrivals arrivals):
        """Values of the next tuple, or a batch, whose ``number`` this then has; None if there is none now, or a mark
        comes first."""
        cdef object found
        while True:
            while not arrivals.open_next():
                if not self.read_frame():
                    return None
            found = arrivals.rows[arrivals.at]
            arrivals.rows[arrivals.at] = None  # so that its values can be named in place
            self.number = arrivals.first + arrivals.at if arrivals.numbers is None else arrivals.numbers[arrivals.at]
            arrivals.at += 1
            self.count -= 1
            self.given += 1 if type(found) is tuple else <uint64_t>found.num_rows
            if not self.lost or self.number not in self.lost:
                return found
            self.lost.discard(self.number)
            if self.has_keys:
                self.keys.forget(self.number)

    def read_all(self):
        """Everything that has come, up to a mark. Whether there was anything.

        Order: before timers go off, so that no batch is made of tuples whose trees have failed, which would fail the
        others in it, and so on for ever.
        """
        cdef bint found = False
        while self.read_frame():
            found = True
        return found

    cdef bint read_frame(self) except -1:
        """One frame, unless a mark waits. Whether there was one that is no mark."""
        if self.mark is not None:
            return False
        frame = self.end.read()
        if frame is None:
            return False
        kind, data = frame
        if kind == TUPLES:
            first, places, values = self.unpack(data)
            self.take_tuples(first, places, values)
        elif kind == BATCH:
            first, place, batch = self.unpack(data)
            (<Arrivals>self.of_place[place]).later.append(([first], [batch]))
            self.count += 1
            self.through = first + batch.num_rows
        elif kind == KEYS:
            self.has_keys = True
            self.keys.add(*self.unpack(data))
        elif kind == CANCEL:
            numbers = set(self.unpack(data))
            waiting = set()
            for arrivals in self.of_place:
                waiting |= (<Arrivals>arrivals).waiting()
            self.lost |= numbers & waiting
            self.cancel(numbers)
        else:
            self.mark = (kind, self.unpack(data))
            return False
        return True

    cdef int take_tuples(self, uint64_t first, object places, object values) except -1:
        """Numbered from ``first`` on; ``places``: of their sources, one int for all or a list."""
        cdef Py_ssize_t i, count = len(values)
        cdef dict found = {}
        if isinstance(places, int):
            (<Arrivals>self.of_place[places]).later.append((first, values))
        else:
            for i in range(count):
                numbers, rows = found.setdefault(places[i], ([], []))
                numbers.append(first + i)
                rows.append(values[i])
            for place, block in found.items():
                (<Arrivals>self.of_place[place]).later.append(block)
        self.count += count
        self.through = first + count
        return 0

    def look(self):
        """Whether there is anything to do: tuples, or a mark."""
        return self.count > 0 or self.read_frame() or self.mark is not None

    @property
    def empty(self):
        """Whether all tuples that were read have been emitted."""
        return self.count == 0


@cython.final
cdef class Work:
    """What goes up with the next frame. ``Work(monotonic, frame_size, frame_bytes, frame_seconds)``: so many emits and
    verdicts, batches of so many bytes, or what there is after so long, are a frame; ``monotonic``: reads the clock.
    ``left``: (kind, parts) of frames that wait for room
    in the ring behind the one that is being written."""

    def __init__(self, monotonic, unsigned long long frame_size, unsigned long long frame_bytes, double frame_seconds):
        self.monotonic = monotonic
        self.frame_size = frame_size
        self.frame_bytes = frame_bytes
        self.frame_seconds = frame_seconds
        self.left = []
        self.clear(True)

    cdef int add_emit(self, Tuple tup, object values) except -1:
        """Values that the component has emitted, or a batch of them, with the numbers of what they are anchored to: an
        int for one, else a tuple."""
        cdef object numbers
        if tup.root is not NULL:
            if tup.root.attempt != tup.attempt or tup.root.id is NULL:
                return 0  # its tree has failed: nothing of it counts
            numbers = <object>tup.root.id
        else:
            numbers, lost = tree_ids(tup)
            if lost:  # what it was made of has failed in part: nothing of it counts, and the others fail with that
                tup.roots.fail_with_group()
                return 0
        self.streams.append(tup.source.stream)
        self.numbers.append(numbers)
        self.values.append(values)
        return 0

    @property
    def any(self):
        """Whether emits, verdicts or exceptions wait for the next frame."""
        return bool(self.numbers or self.acks or self.fails or self.reports or self.lost)

    @property
    def emitted(self):
        """(Numbers, values) of the emits among them."""
        return list(zip(self.numbers, self.values))

    def fail_with_group(self, number):
        """A tuple fails as another one has with which it was an anchor."""
        self.lost.append(number)

    cdef bint is_full(self) noexcept:
        """Whether there is enough for a frame."""
        cdef Py_ssize_t count = PyList_GET_SIZE(self.acks) + PyList_GET_SIZE(self.numbers)
        return self.weight >= self.frame_bytes or <uint64_t>count >= self.frame_size

    cdef bint is_due(self) except -1:
        """Whether what there is has waited for long enough."""
        if self.is_full():
            return True
        if not (self.acks or self.numbers or self.fails or self.reports):
            return False
        return <double>self.monotonic() - self.sent_at >= self.frame_seconds

    def forget_emits(self):
        """They cannot go up."""
        self.streams, self.numbers, self.values = [], [], []
        self.weight = 0

    def as_frame(self, idle, counts, bint whole):
        """The value of a frame of kind WORK. ``whole``: all verdicts of what was done are there."""
        cdef list streams = self.streams
        cdef object stream = streams[0] if streams else None
        # Order: behind the verdict of the one that has failed by itself, or the tree of both, if it is one in the
        # parent, would not use up an attempt.
        cdef list lost = self.lost if whole else []
        emits = (stream if streams.count(stream) == len(streams) else streams, self.numbers, self.values)
        return emits, ranges_of(self.acks), self.fails, self.reports, idle, counts, lost

    def clear(self, bint whole):
        """The frame is on its way."""
        self.forget_emits()
        self.acks, self.fails, self.reports = [], [], []
        if whole:
            self.lost = []
        self.sent_at = self.monotonic()


def ranges_of(list numbers not None):
    """Numbers, each once and in any order, as ascending ranges: first, last, first, last."""
    cdef list found = []
    cdef Py_ssize_t i
    cdef uint64_t first = 0, last = 0, number
    if not numbers:
        return found
    numbers.sort()
    first = last = numbers[0]
    for i in range(1, PyList_GET_SIZE(numbers)):
        number = <object>PyList_GET_ITEM(numbers, i)
        if number != last + 1:
            found.append(first)
            found.append(last)
            first = number
        last = number
    found.append(first)
    found.append(last)
    return found


def rows_lost(Tuple tup not None):
    """Of the tuple of a batch that has failed in part: ([(places of rows, their exception)], whether the others are
    acked). None: all of it has failed, or it is no batch."""
    cdef BatchSlice rows
    cdef dict found = {}
    if not isinstance(tup.payload, BatchSlice) or (<BatchSlice>tup.payload).lost is None:
        return None
    rows = <BatchSlice>tup.payload
    for place, cause in rows.lost.items():
        found.setdefault(id(cause), ([], cause))[0].append(rows.find(place))
    return list(found.values()), rows.acked


cdef class LinkSpoutBase(CompiledSpout):
    """What ``LinkSpout`` inherits, beside ``Spout``: emits the tuples of one source, each with its number as id."""

    def _pystorm_link(self, source, Inbox inbox not None, outbox):
        self.inbox = inbox
        self.arrivals = inbox.of_source[source]
        self.outbox = outbox
        self.work = outbox.work
        self.end = inbox.end

    cdef int next_emit(self) except -1:
        """One tuple or batch, if there is one, and room for what comes of it."""
        cdef object values
        if self.work.is_due():
            self.outbox.send()
        if (self.end.is_writing() or self.work.left) and not self.outbox.write_left():
            return MORE
        values = self.inbox.next_of(self.arrivals)
        if values is None:
            return MORE
        if type(values) is tuple:
            self.emit_with_id(values, self.inbox.number)
        else:
            self.emit_batch(values, self.inbox.number)
        return MORE

    def ack(self, tup_id):
        """Its tree is done."""
        self.work.acks.append(tup_id)
        if self.inbox.has_keys:
            self.inbox.keys.forget(tup_id)
