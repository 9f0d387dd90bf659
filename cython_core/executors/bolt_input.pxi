"""What a bolt takes: the tuples of its receive queue and of rings, and the rows of a batch that has come by either.

    receive queue ─┐  a tuple ──────────────────────────────────────────────► the bolt
    rings         ─┴─ a batch ─► open_rows ─┬─► poll_row: a tuple ──────────► one by one
                                            └─► take_columns: many in one ──► process_many
                                 the last one closes it, and makes room in the queue or ring that it came by

Threading law: as every executor.
"""

from cpython.object cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport Acker, ack_edge, ps_acker_take_late
from cython_core.executors.executor cimport ps_coarse_nanos, ps_decref
from cython_core.queues.queues cimport (
    BroadcastReader, ps_incref, queue_poll, queue_size, reader_poll, reader_size, release_rows,
)
from cython_core.routing.batch_slice cimport BatchSlice, offset_of_place
from cython_core.routing.output_collector cimport anchor_to_tuple
from cython_core.tuples.tuple cimport (
    ColumnSlice, Tuple, TupleBatch, gather, new_edge, new_tuple, ring_edge, take, take_gathered,
)

from cython_core.executors.executor import ComponentFailed


# Of the time-out: 1/64. Larger: trees may fail by so much too early. Smaller: turns that are not long look at all open
# trees, too.
cdef int LONG_TURN_SHIFT = 6
# Rows of a batch that are made Python values at a time. More: memory for rows that wait for room. Fewer: the fixed cost
# of a reading shows.
cdef Py_ssize_t MOST_READ = 256


cdef class BoltInput(BoltFailures):
    """An executor with a receive queue."""

    def discard(self):
        self.opened = self.opened_rows = None
        BoltFailures.discard(self)

    cdef uint64_t begin_taking(self) except? 0:
        """Before tuples leave the queue: reads the clock, for the acker too. When the turn is to end; 0: any time."""
        cdef Acker acker = self.collector.acker
        if acker is not None and acker.acker.timeout > 0:
            acker.read_clock_now()
        return ps_coarse_nanos() + self.turn_time_limit if self.turn_time_limit > 0 else 0

    cdef int end_taking(self, uint64_t began) except -1:
        """After several calls, while the acker's clock may have stood since ``began``. Order: before trees expire."""
        cdef Acker acker = self.collector.acker
        if acker is None or acker.acker.timeout == 0 or self.by_test_clock:
            return 0
        acker.read_clock_now()
        if acker.acker.now - began >= acker.acker.timeout >> LONG_TURN_SHIFT:
            ps_acker_take_late(&acker.acker, began, acker.acker.now)
        return 0

    cdef int skip(self, PyObject *item, bint held=True) except -1:
        """A tuple whose trees have all failed while it waited: nothing that the bolt made of it would count. ``held``:
        whether the rows that it carries, if it does, are held in a queue or ring."""
        cdef TupleBatch rows
        self.skipped += 1
        if isinstance((<Tuple>item).payload, TupleBatch):
            rows = <TupleBatch>(<Tuple>item).payload
            self.skipped += rows.count - 1
            if held:
                self.release_at(self.place, rows)
        ps_decref(item)
        return 0

    cdef int release_at(self, Py_ssize_t place, TupleBatch rows) noexcept:
        """It is done with a batch that came by the queue (0) or a reader."""
        cdef BroadcastReader reader
        if place == 0:
            return release_rows(self.queue, rows.count, rows.weight)
        reader = <BroadcastReader>self.readers[place - 1]
        reader.owner.release_rows(reader.place, rows.count, rows.weight)
        return 0

    cdef bint empty(self) noexcept:
        """Whether nothing has come that was not given to the bolt."""
        cdef BroadcastReader reader
        if queue_size(self.queue) > 0 or self.opened is not None:
            return 0
        if self.readers is not None:
            for reader in self.readers:
                if reader_size(reader) > 0:
                    return 0
        return 1

    cdef void *poll_elsewhere(self) except? NULL:
        """The next row of the batch that is open, else what has come by the queue or the rings."""
        cdef void *item
        if self.opened is not None:
            item = self.poll_row()
            if item is not NULL:
                return item
        return self.poll_any() if self.shares_rings else queue_poll(self.queue)

    cdef void *poll_any(self) noexcept:
        """The oldest tuple of the queue or of a ring, in turn, so that a full one does not keep the bolt from others.

        The caller takes over the reference; NULL where nothing is there.
        """
        cdef Py_ssize_t places = len(self.readers) + 1
        cdef void *item = NULL
        for _place in range(places):
            self.place = self.place + 1 if self.place + 1 < places else 0
            if self.place == 0:
                item = queue_poll(self.queue)
            else:
                item = self.poll_ring(<BroadcastReader>self.readers[self.place - 1])
            if item is not NULL:
                break
        return item

    cdef void *poll_ring(self, BroadcastReader reader) noexcept:
        """A tuple of this bolt's own in place of the ring's: one of the edges that were made when it was emitted."""
        cdef PyObject *shared = reader_poll(reader)
        cdef Tuple tup
        if shared is NULL:
            return NULL
        tup = new_tuple((<Tuple>shared).source, (<Tuple>shared).payload, (<Tuple>shared).offset)
        tup.root = (<Tuple>shared).root
        tup.attempt = (<Tuple>shared).attempt
        tup.roots = (<Tuple>shared).roots
        tup.edge = ring_edge((<Tuple>shared).edge, reader.place)
        ps_decref(shared)
        ps_incref(<PyObject *>tup)
        return <void *>tup

    cdef int open_rows(self, PyObject *item) except -1:
        """The next tuples are the rows of this batch. Takes over the reference."""
        self.opened = <Tuple>item
        ps_decref(item)
        self.opened_place = self.place
        anchor_to_tuple(&self.opened_anchor, self.opened)
        payload = self.opened.payload
        self.opened_by_spout = isinstance(payload, BatchSlice) and (<BatchSlice>payload).of_spout
        gather(self.opened)  # while its rows are read, it waits as if queued
        self.opened_at = self.opened_next = 0
        self.opened_rows = None
        self.opened_by_row = False
        return 0

    cdef int close_rows(self) except -1:
        """All rows of the batch are tuples by now: it is no edge of its trees any more, which theirs are."""
        cdef Tuple tup = self.opened
        cdef TupleBatch rows = <TupleBatch>tup.payload
        self.opened = self.opened_rows = None
        self.release_at(self.opened_place, rows)
        take_gathered(tup)
        if tup.root is not NULL:
            ack_edge(&tup.source.acker.acker, tup.root, tup.attempt, tup.edge)
        elif tup.roots is not None:
            tup.roots.ack_edge(tup.edge)
        return 0

    cdef void *poll_row(self) except? NULL:
        """The next row of the batch that is open, as a tuple of its own; the caller takes over the reference. Behind
        the last one the batch is closed. NULL if it is, as its last rows could not be read."""
        cdef TupleBatch rows = <TupleBatch>self.opened.payload
        cdef Py_ssize_t at
        cdef Tuple tup
        while self.opened is not None:
            if self.opened_rows is None or self.opened_next == len(self.opened_rows):
                self.read_rows(rows)
            values = self.opened_rows[self.opened_next]
            self.opened_rows[self.opened_next] = None  # so that its values can be named in place
            self.opened_next += 1
            if self.opened_by_spout:
                at = self.opened_at - len(self.opened_rows) + self.opened_next - 1
                self.opened_anchor.offset = offset_of_place((<BatchSlice>rows).place(at))
            error = None if PyTuple_CheckExact(values) else values
            tup = new_edge(self.opened.source, values if error is None else error.row, &self.opened_anchor)
            if self.opened_at == rows.count and self.opened_next == len(self.opened_rows):
                self.close_rows()
            if error is None:
                ps_incref(<PyObject *>tup)
                return <void *>tup
            self.fail_unread(tup, error)
        return NULL

    cdef int read_rows(self, TupleBatch rows) except -1:
        """Some more of them; one that cannot be read is its error."""
        cdef Py_ssize_t end = min(rows.count, self.opened_at + MOST_READ)
        cdef BatchSlice batch
        cdef Py_ssize_t i
        try:
            self.opened_rows = rows.between(self.opened_at, end)
        except Exception:
            batch = <BatchSlice?>rows  # values of Python can be read
            self.opened_rows = [batch.row_or_error(i, repr(self.opened.source)) for i in range(self.opened_at, end)]
        self.opened_at = end
        self.opened_next = 0
        return 0

    cdef void *take_columns(self, long most) except? NULL:
        """At most so many rows of the batch that is open, as columns in one tuple; the caller takes over the reference.
        NULL if one of them cannot be read: then its rows come one by one, so that it fails alone."""
        cdef TupleBatch rows = <TupleBatch>self.opened.payload
        cdef Py_ssize_t count = min(rows.count - self.opened_at, most)
        cdef ColumnSlice part
        cdef Tuple tup
        if isinstance(rows, ColumnSlice):
            part = (<ColumnSlice>rows).part(self.opened_at, count)
        else:
            try:
                part = (<BatchSlice>rows).columns(self.opened.source.fields, self.opened_at, count)
            except Exception:
                self.opened_by_row = True
                return NULL
        tup = new_edge(self.opened.source, part, &self.opened_anchor)
        if count == 1:  # what is made of it stems from that row
            tup.offset = part.offset_of(tup, part.start)
        self.opened_at += count
        if self.opened_at == rows.count:
            self.close_rows()
        ps_incref(<PyObject *>tup)
        return <void *>tup

    cdef int fail_unread(self, Tuple tup, object error) except -1:
        """A row that cannot be read counts as one that the bolt has raised for: others of its batch go on."""
        self.unread += 1
        take(tup)
        self.errors += self.exits
        if self.exits:
            raise ComponentFailed(self.component, self.task, "process", tup, tup.offset) from error
        self.survive("process", tup, tup.offset, error)
        self.collector.fail(tup, "process", error)  # order: whatever auto_fail says, as the bolt does not get it
        if self.collector.failed is not None:
            self.raise_tuple_failed("process", error)
        return 0
