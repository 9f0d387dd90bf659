"""The executor of an Arrow bolt: what has come since its last turn becomes batches, whatever form it came in.

    receive queue ─► a batch                      ─► process_batch(batch) ─► ack, or fail: the batch, or the rows of a
                  ─► tuples of one stream, in one ─► process_batch(batch)    mask

Threading law: as every executor.
"""

cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport NO_ATTEMPT
from cython_core.arrow.row_batch cimport RowBatchBuilder, RowSink
from cython_core.executors.bolt_executor cimport BoltExecutor
from cython_core.executors.executor cimport past_deadline, ps_decref
from cython_core.executors.batching cimport comes_again
from cython_core.queues.queues cimport PendingEmits, ReceiveQueue, ps_incref
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.output_collector cimport BoltOutputCollector, set_current_collector
from cython_core.timing.turn_times cimport end_call
from cython_core.tuples.tuple cimport OPEN, Tuple, gather, take

import pyarrow as pa

from cython_core.arrow.lossless_cast import conform_array
from cython_core.arrow.row_error import row_error
from cython_core.arrow.value_converter import Misfit
from cython_core.executors.executor import ComponentFailed
from cython_core.routing.component_base import ArrowBase
from cython_core.routing.failure_kinds import FailureKind

# Tuples per call that a turn may make. More: one call keeps other components waiting for longer. Fewer: a batch of few
# rows costs as much as one of many.
cdef long ROWS_PER_CALL = 16


@cython.final
cdef class ArrowExecutor(BoltExecutor):
    """As BoltExecutor. ``schemas``: (component, stream) → ``pyarrow.Schema`` of the declared fields, None if one of
    them has no type: then values say it."""

    def __init__(self, str component not None, int task, instance, PendingEmits pending not None, dict routers not None,
                 ReceiveQueue queue not None, tick_frequency=None, tuple readers=(), *, dict schemas not None):
        if not isinstance(instance, ArrowBase):
            raise TypeError(
                f"component {component!r} is run as a bolt of batches and must be one; Given: {type(instance)!r}"
            )
        self.schemas = schemas
        self.sinks = {}
        self.more = []
        super().__init__(component, task, instance, pending, routers, queue, tick_frequency, readers)
        self.collector.batches = {}
        queue.takes_batches = True

    def ready(self):
        BoltExecutor.ready(self)
        self.call = self.instance.process_batch

    def discard(self):
        self.ahead = None
        self.more = []
        self.collector.batches.clear()
        BoltExecutor.discard(self)

    cdef bint empty(self) noexcept:
        return self.ahead is None and BoltExecutor.empty(self)

    cdef long consume(self, long quota) except -1:
        """At most ``quota`` calls, stopping at the first that leaves an emit pending."""
        cdef long calls = 0
        cdef uint64_t until, began
        cdef unsigned long long before
        cdef BoltOutputCollector collector = self.collector
        cdef list tups
        if self.empty():
            return 0
        until = self.begin_taking()
        began = 0 if collector.acker is None else collector.acker.acker.now
        set_current_collector(collector)
        while calls < quota:
            before = self.skipped
            tups = self.take_rows(1 if quota == 1 else quota * ROWS_PER_CALL)
            calls += self.skipped > before  # room was made: that is progress
            if not tups:
                break
            calls += 1
            while tups:
                tups = self.process_rows(tups)
            if self.times.singly:
                end_call(self.times)
            if self.by_test_clock:
                collector.acker.read_clock_now()
            if self.pending.count > 0 or past_deadline(self, until, calls):
                break
        if calls > 1:
            self.end_taking(began)
        return calls

    cdef list take_rows(self, long most):
        """The one tuple of a batch, or at most so many tuples of one stream. One that comes again comes alone, or it
        would fail for the same one among those that were with it."""
        cdef list tups = []
        cdef Tuple tup
        cdef bint alone
        while len(tups) < most:
            tup = self.take_one()
            if tup is None:
                break
            alone = isinstance(tup.payload, BatchSlice) or comes_again(tup)
            if tups and (alone or not of_one_stream(<Tuple>tups[0], tup)):
                self.ahead = tup
                self.ahead_place = self.place
                gather(tup)
                break
            tups.append(tup)
            if alone:
                break
        return tups

    cdef Tuple take_one(self):
        cdef Tuple tup = self.ahead
        cdef void *item
        if tup is not None:
            self.ahead = None
            self.place = self.ahead_place
            tup.gathered = 0
            if take(tup):
                return tup
            ps_incref(<PyObject *>tup)
            self.skip(<PyObject *>tup)
        while True:
            item = self.poll_elsewhere()
            if item is NULL:
                return None
            if not take(<Tuple>item):
                self.skip(<PyObject *>item)
                continue
            tup = <Tuple>item
            ps_decref(<PyObject *>item)
            return tup

    cdef list process_rows(self, list tups):
        """Gives the bolt a batch of the first of these tuples, most often of all; returns the others."""
        cdef list others = []
        cdef BoltOutputCollector collector = self.collector
        cdef Tuple first = <Tuple>tups[0]
        cdef bint whole = isinstance(first.payload, BatchSlice)
        cdef Py_ssize_t place = self.place
        cdef unsigned long long emits = collector.emits
        batch = None
        try:
            batch = self.more.pop(0) if self.more else self.batch_of(tups)
            self.executed += batch.num_rows
            if not whole and batch.num_rows < len(tups):
                tups, others = tups[:batch.num_rows], tups[batch.num_rows:]
            collector.current = first if whole else None
            collector.batch = None if whole else tups
            collector.batch_anchored = False
            # It may have come twice, and each has a verdict of its own. One that the bolt may hold is not that of the
            # slice, which would keep it for as long as it is known.
            if id(batch) in collector.batches or not (self.auto_ack and self.auto_fail):
                batch = batch.slice(0)
            collector.hold_batch(batch, tups)
            answer = self.call(batch)
            error = None if answer is None or collector.emits > emits else collector.lost_by("process_batch", answer)
            if error is not None:
                raise error
            if self.auto_ack:
                collector.settle_batch(tups, None)
        except Exception as error:
            self.fail_rows(tups, error)
        except BaseException as error:
            raise self.interrupted("process_batch", first, first.offset, error)
        finally:
            collector.leave_batch(batch, self.auto_ack and not any_open(tups))
            if whole:
                self.release_at(place, <BatchSlice>first.payload)
            collector.batch = collector.batch_roots = collector.current = None
            collector.batch_anchored = False
        if collector.failed is not None:
            self.raise_tuple_failed("fail", None)
        return others

    cdef object batch_of(self, list tups):
        """The rows as a batch of the declared types. Of tuples perhaps the first ones only: the others are in
        ``more``."""
        cdef Tuple first = <Tuple>tups[0]
        schema = self.schemas.get((first.source.component, first.source.stream))
        if not isinstance(first.payload, BatchSlice):
            return self.batch_of_rows(tups)
        batch = (<BatchSlice>first.payload).batch()
        if schema is None:
            if batch.schema.names == list(first.source.fields):
                return batch
            return batch.rename_columns(list(first.source.fields))
        if batch.schema.equals(schema):
            return batch
        arrays = [conformed(first, column, field) for column, field in zip(batch.columns, schema)]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    cdef object batch_of_rows(self, list tups):
        cdef Tuple tup = <Tuple>tups[0]
        cdef RowSink sink
        key = (tup.source.component, tup.source.stream)
        schema = self.schemas.get(key)
        if schema is None or not tup.source.fields:
            columns = [pa.array([(<Tuple>each).payload[i] for each in tups]) for i in range(len(tup.payload))]
            struct = pa.StructArray.from_arrays(columns, names=list(tup.source.fields)) if columns else None
            if struct is None:
                struct = pa.StructArray.from_buffers(pa.struct([]), len(tups), [None])
            return pa.RecordBatch.from_struct_array(struct)
        sink = self.sinks.get(key)
        if sink is None:
            builder = RowBatchBuilder(schema, MOST_ROWS, MOST_BYTES)
            sink = self.sinks[key] = RowSink(builder, range(len(schema)), label=f"{key[0]}.{key[1]}")
        try:
            for each in tups:
                sink.append((<Tuple>each).payload, -1, NO_ATTEMPT)
            sink.builder.seal()
        except BaseException:
            del self.sinks[key]  # with the rows that it holds
            raise
        self.more, sink.builder.done = sink.builder.done, []
        return self.more.pop(0)

    cdef int fail_rows(self, list tups, object cause) except -1:
        """Handles an exception of the bolt, inside its ``except``: fails the rows that it worked on."""
        cdef Tuple first = <Tuple>tups[0]
        cdef bint by_bolt = isinstance(cause, FailureKind)
        cdef bint exits = self.named(cause) == 0 and self.exits
        self.errors += exits
        if not exits and not by_bolt:
            self.survive("process_batch", first, first.offset, cause)
        if self.auto_fail or by_bolt:
            for tup in tups:
                if (<Tuple>tup).verdict == OPEN:
                    self.collector.fail(<Tuple>tup, "process_batch", cause)
        if exits:
            raise ComponentFailed(self.component, self.task, "process_batch", first, first.offset) from cause
        if self.collector.failed is not None:
            self.raise_tuple_failed("process_batch", cause)
        return 0


# Beyond what one batch of gathered rows has: they are at most ROWS_PER_CALL times a turn's calls.
cdef Py_ssize_t MOST_ROWS = 1 << 24
# Of gathered rows; a batch that has more ends there. More: a copy of so much beside the tuples. Fewer: rows of much
# text come in small batches. Beyond 2 GiB a column is no array any more.
cdef Py_ssize_t MOST_BYTES = 64 << 20


cdef object conformed(Tuple first, object column, object field):
    """The column of a batch of this tuple's stream as the declared type. Raises RowError."""
    try:
        return conform_array(column, field.type)
    except Misfit as misfit:
        label = f"{first.source.component}.{first.source.stream}"
        raise row_error(field, misfit.path, field.type, misfit.value, label, misfit.reason) from misfit


cdef bint of_one_stream(Tuple one, Tuple other) except -1:
    return one.source is other.source or (
        one.source.component == other.source.component and one.source.stream == other.source.stream
    )


cdef bint any_open(list tups) except -1:
    cdef Tuple tup
    for tup in tups:
        if tup.verdict == OPEN:
            return True
    return False
