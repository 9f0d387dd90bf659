"""What every bolt inherits: the general ``emit``, for all that is no plain emit (plain_emit.pxi), and the verdicts.

Threading law: as spout_base.pxi.
"""

cimport cython
from cython_core.acking.acker cimport anchor_t, no_anchor
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.output_collector cimport (
    BoltOutputCollector, OutputCollector, check_columns, collector_of, collector_or_none, emit_by_protocol, name_of,
    register_base, send_by_protocol, slices_given, try_bolt_emit,
)
from cython_core.routing.stream_router cimport (
    StreamRouter, check_fields, columns_of, emit_one_by_one, length_of, send_columns,
)
from cython_core.routing.own_thread cimport admit, await_room
from cython_core.tuples.tuple cimport OPEN, Tuple, tuple_named

import pyarrow as pa

from cython_core.arrow.row_error import coded, shown
from cython_core.routing.failure_kinds import kind_of


@cython.auto_pickle(True)
cdef class BoltBase:
    """What every bolt inherits. Has no fields."""

    def emit(self, tup, stream=None, anchors=None, direct_task=None, need_task_ids=False):
        """Emits one tuple. Does not block. Values are shared with all receivers: do not change them afterwards.

        Args:
            tup (list | tuple): one value for each field of the stream.
            stream (str): the stream. Defaults to "default".
            anchors (list[Tuple | str]): tuples, or ids of tuples, that it stems from: if it fails, they fail. Defaults
                to None: the tuple in ``process``, or all of ``process_batch`` (``auto_anchor``); ``[]``: none.
            direct_task (int): on a direct stream, the id of the task that gets it. Defaults to None.
            need_task_ids (bool): return the task ids. Defaults to False, as in pystorm 3.

        Returns:
            list[int] | None: the task ids that got it, with ``need_task_ids``.

        Raises:
            TypeError: values or anchors that are no list or tuple.
            ValueError: a wrong number of values, an undeclared stream, a direct task on a stream that is not direct or
                none on one that is, an anchor that was acked or failed already.
            RuntimeError: the component is in no running topology, or between two micro-batches.
        """
        cdef OutputCollector found = collector_or_none(self)
        cdef BoltOutputCollector collector
        cdef anchor_t anchor = no_anchor(-1)
        cdef object _alive
        if found is not None and not found.is_own() and not await_room(found):
            found = collector_or_none(self)
        if found is None:
            if anchors is None:
                anchors = getattr(self, "_current_tups", ()) if getattr(self, "auto_anchor", True) else ()
            more = {"anchors": [given.id if isinstance(given, Tuple) else given for given in anchors]}
            return emit_by_protocol(self, tup, more, stream, direct_task, need_task_ids)
        collector = <BoltOutputCollector?>found
        if anchors is None:
            _alive = collector.anchor_to_current(&anchor)
        else:
            _alive = collector.anchor_to(anchors, &anchor)
        if collector.has_tasks or not collector.is_own():
            admit(collector, &anchor, anchors is not None or collector.has_tasks, tup)
        return collector.send_with(tup, stream, &anchor, direct_task, need_task_ids)

    def emit_batch(self, batch, stream=None, anchors=None, direct_task=None):
        """Emits the rows of a batch. Does not block. Bolts of rows get them one by one, an ``ArrowBolt`` as batches.

        Column i is field i of the stream. A stream that is an output hands the batch on without conversion.

        Args:
            batch (pyarrow.RecordBatch): the rows; or a data frame, whatever has ``__arrow_c_stream__`` or
                ``__arrow_c_array__``: a pyarrow.Table, Polars', pandas' without its index, a relation of DuckDB. No
                rows: nothing is emitted.
            stream (str): the stream. Defaults to "default".
            anchors (list[Tuple | str]): as of ``emit``; of an ``ArrowBolt``, batches too. Defaults to None: what the
                bolt works on.
            direct_task (int): on a direct stream, the id of the task that gets it. Defaults to None.

        Raises:
            TypeError: no batch.
            ValueError: another number of columns than the stream has fields, and as ``emit``.
            RuntimeError: the component is in no running topology, or between two micro-batches.
        """
        cdef BoltOutputCollector collector
        cdef BatchSlice rows
        cdef list slices = slices_given(self, batch)
        cdef StreamRouter router
        cdef anchor_t anchor = no_anchor(-1)
        cdef object _alive
        cdef OutputCollector found = collector_or_none(self)
        if found is not None and not found.is_own() and not await_room(found):
            found = collector_or_none(self)
        if found is None:
            for rows in slices:
                for row in rows.between(0, rows.count):
                    self.emit(row, stream, anchors, direct_task)
            return
        collector = <BoltOutputCollector?>found
        router = collector.router_of(stream)
        for rows in slices:
            check_columns(router, rows)
        if anchors is None:
            _alive = collector.anchor_to_current(&anchor)
        else:
            _alive = collector.anchor_to(anchors, &anchor)
        if collector.has_tasks or not collector.is_own():
            admit(collector, &anchor, anchors is not None or collector.has_tasks, batch)
        for rows in slices:
            router.route_batch(rows, &anchor, direct_task)
            collector.emits += rows.count

    def emit_many(self, *columns, stream=None, anchors=None):
        """Emits many tuples in one call, given by the columns: as ``for row in zip(*columns): self.emit(row)``, at a
        fraction of the cost. Does not block.

        Args:
            columns (list | tuple): for each field of the stream the values of all rows; anything that a tuple can be
                made of, but no text. Of Arrow and numpy give ``to_pylist()`` and ``tolist()``.
            stream (str): the stream. Defaults to "default".
            anchors (list[Tuple | str]): tuples, or ids of tuples, that each row stems from. Defaults to None: the
                tuple in ``process``, or all of ``process_batch`` and ``process_many``; ``[]``: none.

        Raises:
            TypeError: a column that has no values; anchors that are no list or tuple.
            ValueError: columns of unequal length, not one for each field, an undeclared or direct stream, an anchor
                that was acked or failed already.
            RuntimeError: the component is in no running topology, or between two micro-batches.

        Example:
            >>> from pystorm_source import Bolt, Topology
            >>> from pystorm_source.spouts import MemorySpout
            >>> from pystorm_source.testing import run_topology
            >>> class Split(Bolt):
            ...     outputs = ["word string", "length int"]
            ...     def process(self, tup):
            ...         words = tup.values.line.split()
            ...         self.emit_many(words, map(len, words))
            >>> class Words(Topology):
            ...     lines = MemorySpout.spec(fields=["line string"], rows=[["so the cow"]])
            ...     words = Split.spec(inputs=[lines])
            >>> run_topology(Words).rows("words")
            [('so', 2), ('the', 3), ('cow', 3)]
        """
        cdef OutputCollector found = collector_or_none(self)
        cdef BoltOutputCollector collector
        cdef StreamRouter router
        cdef anchor_t anchor = no_anchor(-1)
        cdef tuple given = columns_of(columns)
        cdef Py_ssize_t rows = length_of(given, None)
        cdef object _alive
        if found is not None and not found.is_own() and not await_room(found):
            found = collector_or_none(self)
        if found is None or not found.emits_itself:
            named = {} if stream is None else {"stream": stream}
            emit_one_by_one(self, given, None, named if anchors is None else {**named, "anchors": anchors})
            return
        collector = <BoltOutputCollector?>found
        router = collector.router_of(stream)
        check_fields(router, given)
        if rows == 0:
            return
        if anchors is None:
            _alive = collector.anchor_to_current(&anchor)
        else:
            _alive = collector.anchor_to(anchors, &anchor)
        if collector.has_tasks or not collector.is_own():
            admit(collector, &anchor, anchors is not None or collector.has_tasks, columns)
        send_columns(router, given, rows, &anchor, &collector.emits)

    def process_many(self, tups):
        """Handles the tuples that have come, many in one call; used in place of ``process`` if a bolt defines it.

        Define it if the bolt needs no verdict of its own for each tuple. It gets what is there when its turn comes:
        one tuple or some hundred, from all tasks and streams that it subscribes to, oldest first. How many come
        together changes from run to run; the rows of the bolt must not depend on it.

        When it returns, all of them are acked (``auto_ack``). If it raises, all fail (``auto_fail``): catch what one
        tuple raises and call ``fail`` for that one. An emit without ``anchors`` is anchored to all of them, as in
        ``BatchingBolt.process_batch``, and if it fails all are emitted again; its offset is that of the first tuple.
        ``anchors=[tup]`` ties it to its own tuple. After a ``fail`` it needs anchors: those that have no verdict.

        Args:
            tups (TupleList): the tuples; never empty. Their values are shared with other receivers.
                ``tups.column(field)`` has the values of a field: it costs less than a loop.

        Example:
            >>> from collections import Counter
            >>> from pystorm_source import Bolt, Topology
            >>> from pystorm_source.spouts import MemorySpout
            >>> from pystorm_source.testing import run_topology
            >>> class Count(Bolt):
            ...     outputs = ["word string", "count long"]
            ...     def initialize(self, conf, context):
            ...         self.counts = Counter()
            ...     def process_many(self, tups):
            ...         self.counts.update(tups.column("word"))
            ...     def process_tick(self, tup):
            ...         if self.is_final_tick(tup):
            ...             self.emit_many(self.counts.keys(), self.counts.values())
            ...             self.counts.clear()
            >>> class Counts(Topology):
            ...     words = MemorySpout.spec(fields=["word string"], rows=[["the"], ["cow"], ["the"]])
            ...     counts = Count.spec(inputs=[words])
            >>> run_topology(Counts).rows("counts")
            [('the', 2), ('cow', 1)]
        """

    def ack(self, tup):
        """Says that the tuple is done. The first verdict of a tuple counts, a second has no effect.

        Args:
            tup (Tuple | str): the tuple, or its id.

        Raises:
            ValueError: None.
            RuntimeError: the component is in no running topology.
        """
        settle(self, "ack", tup)

    def fail(self, tup, *, error=None, retry=True):
        """Fails the tuple: its spout's ``fail`` is called for each tree that it is part of.

        A partitioned spout's tuple is emitted again, ``topology.max.spout.retries`` times. The first verdict of a
        tuple counts, a second has no effect.

        Args:
            tup (Tuple | str): the tuple, or its id.
            error (Exception): why, for the dead letter; ``RetryLater(seconds)`` and ``Hopeless(reason)`` decide what
                is to become of it, other exceptions as ``topology.retry.on`` says. Defaults to None.
            retry (bool): False: it is a dead letter at once. Defaults to True.

        Raises:
            ValueError: None, or an ``error`` that is no exception.
            RuntimeError: the component is in no running topology.
        """
        cause = None if error is None and retry is True else kind_of(error, retry)
        settle(self, "fail", tup, True, cause)

    def reset_timeout(self, tup):
        """Begins the time-out of the tuple's trees anew. Storm's ``resetTimeout``.

        For a bolt that works on a tuple for longer than ``topology.message.timeout.secs`` and knows that it is alive.
        A tuple that was acked or failed stays as it is.

        Args:
            tup (Tuple | str): the tuple, or its id.

        Raises:
            ValueError: None.
            RuntimeError: the component is in no running topology.
        """
        cdef Tuple found
        if verdict_by_protocol(self, "reset_timeout", tup):
            return
        found = tuple_meant(tup)
        if found is not None and found.verdict == OPEN:
            (<BoltOutputCollector?>collector_of(self)).reset_timeout(found)

    def process_tick(self, tup):
        """Called every ``topology.tick.tuple.freq.secs``, and when a range ends. Does nothing unless overridden.

        Ticks never reach ``process``.

        Args:
            tup (Tuple): the tick: its values are ``(seconds,)``, and ``(0,)`` when a range ends (``is_final_tick``).
        """


@cython.auto_pickle(True)
cdef class ArrowBase(BoltBase):
    """What bolts of batches inherit: verdicts of batches."""

    def ack(self, tup):
        """Says that all rows of a batch are done, for a bolt with ``auto_ack = False``.

        Args:
            tup (pyarrow.RecordBatch | Tuple): the batch that ``process_batch`` was given, itself; or a tick.

        Raises:
            ValueError: another batch.
            RuntimeError: the component is in no running topology.
        """
        if not isinstance(tup, pa.RecordBatch):
            return BoltBase.ack(self, tup)
        cdef BoltOutputCollector collector = <BoltOutputCollector?>collector_of(self)
        collector.settle_batch(collector.tuples_of("ack", tup), None)

    def fail(self, tup, rows=None, *, error=None, retry=True):
        """Fails rows of a batch: their spout emits them again, or gives them up, each by itself.

        What is emitted for a batch belongs to all its rows, so it is taken back if one of them fails. The others then
        come again, too, which is no attempt of theirs. May be called several times, with other rows.

        Args:
            tup (pyarrow.RecordBatch | Tuple): the batch that ``process_batch`` was given, itself; or a tick.
            rows (pyarrow.BooleanArray | list[bool]): for each row, whether it fails. Defaults to None: all do.
            error (Exception): why, for the dead letter; ``RetryLater(seconds)`` and ``Hopeless(reason)`` decide what
                is to become of them, other exceptions as ``topology.retry.on`` says. Defaults to None.
            retry (bool): False: they are dead letters at once. Defaults to True.

        Raises:
            ValueError: another batch, a mask of another length, or an ``error`` that is no exception.
            RuntimeError: the component is in no running topology.
        """
        if not isinstance(tup, pa.RecordBatch):
            return BoltBase.fail(self, tup, error=error, retry=retry)
        cdef BoltOutputCollector collector = <BoltOutputCollector?>collector_of(self)
        cdef list tups = collector.tuples_of("fail", tup)
        mask = [True] * tup.num_rows if rows is None else list(rows.to_pylist() if hasattr(rows, "to_pylist") else rows)
        if len(mask) != tup.num_rows:
            raise coded(
                ValueError,
                "PYSTORM_INVALID_ANCHOR",
                f"{name_of(self)}.fail: a mask has a value for each of the {tup.num_rows} rows; Given: {shown(rows)}",
            )
        cause = kind_of(error, retry)
        collector.settle_batch(tups, [bool(failed) for failed in mask], "fail", cause)


cdef bint verdict_by_protocol(object component, str method, object given) except -1:
    """``send_by_protocol`` of an ack, fail or reset of a tuple or a tuple's id. Raises ValueError for None."""
    if given is None:
        raise coded(
            ValueError,
            "PYSTORM_INVALID_ANCHOR",
            f"{name_of(component)}.{method} takes a tuple or its id; Given: None",
        )
    if collector_or_none(component) is not None:
        return False  # order: before the id, a string that is made and named when it is first asked for
    return send_by_protocol(component, {"command": method, "id": given.id if isinstance(given, Tuple) else given})


cdef Tuple tuple_meant(object given):
    """The tuple, given itself or by its id; None if no tuple of that id is held any more."""
    cdef Tuple tup = <Tuple>given if isinstance(given, Tuple) else tuple_named(given)
    if tup is not None and tup.root is NULL and tup.roots is None and tup.key is not None:
        tup = tuple_named(tup.key) or tup  # a copy stands for what it is a copy of
    return tup


cdef int settle(object component, str method, object given, bint failed=False, object cause=None) except -1:
    cdef BoltOutputCollector collector
    cdef Tuple tup
    if verdict_by_protocol(component, method, given):
        return 0
    collector = <BoltOutputCollector?>collector_of(component)
    tup = tuple_meant(given)
    if tup is None:
        collector.duplicate_verdicts += 1  # no tuple of that id is held any more
    elif failed:
        collector.fail(tup, "fail", cause)
    else:
        collector.ack(tup)
    return 0


register_base(BoltBase, True, try_bolt_emit)
