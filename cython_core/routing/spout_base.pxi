"""What every spout inherits: the general ``emit``, for all that is no plain emit (plain_emit.pxi), and its like.

Threading law: as OutputCollector.
"""

cimport cython
from cpython.object cimport PyObject

from cython_core.acking.acker cimport anchor_t, no_anchor
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.stream_router cimport (
    StreamRouter, check_fields, columns_of, emit_one_by_one, length_of, refill, send_columns,
)
from cython_core.routing.output_collector cimport (
    OutputCollector, SpoutOutputCollector, check_range, collector_or_none, emit_by_protocol, name_of, register_base,
    send_rooted, slices_given, try_spout_emit,
)
from cython_core.routing.own_thread cimport admit, await_room
from cython_core.tuples.tuple cimport named_values

from cython_core.arrow.row_error import coded, shown


@cython.auto_pickle(True)
cdef class SpoutBase:
    """What every spout inherits. Has no fields."""

    def emit(self, tup, tup_id=None, stream=None, direct_task=None, need_task_ids=False):
        """Emits one tuple. Does not block. Values are shared with all receivers: do not change them afterwards.

        Args:
            tup (list | tuple): one value for each field of the stream.
            tup_id (Any): of a partitioned spout the tuple's offset, an int inside the open range; of others the
                message id that ``ack`` or ``fail`` will get. Defaults to None: neither is called.
            stream (str): the stream. Defaults to "default".
            direct_task (int): on a direct stream, the id of the task that gets it. Defaults to None.
            need_task_ids (bool): return the task ids. Defaults to False, as in pystorm 3.

        Returns:
            list[int] | None: the task ids that got it, with ``need_task_ids``.

        Raises:
            TypeError: values that are no list or tuple.
            ValueError: a wrong number of values, an undeclared stream, a direct task on a stream that is not direct or
                none on one that is, an offset outside the range.
            RuntimeError: the component is in no running topology.
        """
        cdef OutputCollector found = collector_or_none(self)
        cdef SpoutOutputCollector collector
        if found is not None and not found.is_own():
            found = admitted(self, found, tup)
        if found is None:
            more = {} if tup_id is None else {"id": tup_id}
            return emit_by_protocol(self, tup, more, stream, direct_task, need_task_ids)
        collector = <SpoutOutputCollector?>found
        if collector.bounded:
            check_range(collector, tup_id)
        return collector.emit(tup, tup_id, stream, direct_task, need_task_ids)

    def emit_batch(self, batch, tup_id=None, stream=None, direct_task=None):
        """Emits the rows of a batch. Does not block. Bolts of rows get them one by one, an ``ArrowBolt`` as batches.

        Column i is field i of the stream. The rows are one tuple tree: ``ack`` or ``fail`` is called once for all.

        Args:
            batch (pyarrow.RecordBatch): the rows; or a data frame, whatever has ``__arrow_c_stream__`` or
                ``__arrow_c_array__``: a pyarrow.Table, Polars', pandas' without its index, a relation of DuckDB. No
                rows: nothing is emitted.
            tup_id (Any): as of ``emit``; of a partitioned spout the offset of the last row. Defaults to None.
            stream (str): the stream. Defaults to "default".
            direct_task (int): on a direct stream, the id of the task that gets it. Defaults to None.

        Raises:
            TypeError: no batch.
            ValueError: another number of columns than the stream has fields, and as ``emit``.
            RuntimeError: the component is in no running topology.
        """
        cdef SpoutOutputCollector collector
        cdef BatchSlice rows
        cdef list slices = slices_given(self, batch)
        if len(slices) > 1:
            raise coded(
                ValueError,
                "PYSTORM_VALUE_DOES_NOT_FIT",
                f"{name_of(self)}.emit_batch: the rows are one tuple tree, and a column of them is too large for one "
                f"batch: emit fewer rows a call. Given: {shown(batch)}",
            )
        rows = <BatchSlice>slices[0]
        cdef OutputCollector found = collector_or_none(self)
        if found is not None and not found.is_own():
            found = admitted(self, found, batch)
        if found is None:
            values = rows.between(0, rows.count)
            for i, row in enumerate(values):
                self.emit(row, tup_id if i + 1 == len(values) else None, stream, direct_task)
            return
        collector = <SpoutOutputCollector?>found
        if collector.bounded:
            check_range(collector, tup_id)
        where = None if stream is None and direct_task is None else (stream, direct_task)
        collector.emit_rows(rows, tup_id, where, 1)

    def emit_many(self, *columns, tup_ids=None, stream=None):
        """Emits many tuples in one call, given by the columns: as ``for row in zip(*columns): self.emit(row)``, at a
        fraction of the cost. Does not block.

        What waits for room in the queues behind is what one call has emitted: some thousand rows a call are plenty.

        Args:
            columns (list | tuple): for each field of the stream the values of all rows; anything that a tuple can be
                made of, but no text. Of Arrow and numpy give ``to_pylist()`` and ``tolist()``.
            tup_ids (list | range): one for each row: of a partitioned spout the offsets, of others the message ids.
                Defaults to None: no tuple has one.
            stream (str): the stream. Defaults to "default".

        Raises:
            TypeError: a column that has no values.
            ValueError: columns of unequal length, not one for each field, an undeclared or direct stream, an offset
                outside the range. What came before a wrong offset is emitted.
            RuntimeError: the component is in no running topology.

        Example:
            >>> from pystorm_source import PartitionedSpout, Topology
            >>> from pystorm_source.testing import run_topology
            >>> class Numbers(PartitionedSpout):
            ...     outputs = ["n long", "square long"]
            ...     def partitions(self): return ["all"]
            ...     def latest(self, partition): return 5
            ...     def open(self, partition, start, end): self.left = range(start, end)
            ...     def next_tuple(self):
            ...         now, self.left = self.left[:1000], self.left[1000:]
            ...         self.emit_many(now, [n * n for n in now], tup_ids=now)
            ...         return len(self.left) > 0
            >>> class Squares(Topology):
            ...     numbers = Numbers.spec()
            >>> run_topology(Squares).rows("numbers")
            [(0, 0), (1, 1), (2, 4), (3, 9), (4, 16)]
        """
        cdef OutputCollector found = collector_or_none(self)
        cdef tuple given = columns_of(columns)
        cdef tuple ids = None if tup_ids is None else tuple(tup_ids)
        if found is not None and not found.is_own():
            found = admitted(self, found, columns)
        if found is None or not found.emits_itself:
            emit_one_by_one(self, given, ids, {} if stream is None else {"stream": stream})
        else:
            emit_columns(<SpoutOutputCollector?>found, given, ids, stream)

    def ack(self, tup_id):
        """Called when the tuple tree of ``tup_id`` is done. Does nothing unless overridden.

        Args:
            tup_id (Any): what was given to ``emit``.
        """

    def fail(self, tup_id):
        """Called when the tuple tree of ``tup_id`` has failed or timed out. Does nothing unless overridden.

        Args:
            tup_id (Any): what was given to ``emit``.
        """


cdef OutputCollector admitted(object spout, OutputCollector collector, object values):
    """Of an emit by a thread of the spout's: its collector, once there is room; None: the run has been given up."""
    if not await_room(collector):
        return collector_or_none(spout)
    admit(collector, NULL, False, values)
    return collector


cdef int emit_columns(SpoutOutputCollector collector, tuple columns, tuple ids, object stream) except -1:
    """As many emits as the columns have rows, each with its id if there are ids."""
    cdef StreamRouter router = collector.router_of(stream)
    cdef Py_ssize_t rows = length_of(columns, ids)
    cdef list row = [None] * len(columns)
    cdef bint untracked = collector.bounded and (not collector.tracks or not router.routes)
    cdef bint straight = router is collector.default_router and collector.tracks
    cdef anchor_t anchor = no_anchor(collector.last_offset)
    cdef object tup_id = None
    cdef object values
    cdef Py_ssize_t i
    check_fields(router, columns)
    if ids is None and not collector.bounded:
        return send_columns(router, columns, rows, &anchor, &collector.emits)
    for i in range(rows):
        if ids is not None:
            tup_id = ids[i]
        if collector.bounded:
            check_range(collector, tup_id)
        refill(row, columns, i)
        if untracked:
            anchor.offset = collector.last_offset
            collector.send(row, stream, &anchor, None)
            continue
        values = named_values(row, router.source.values_class)
        if not (straight and tup_id is not None and
                send_rooted(<PyObject *>collector, <PyObject *>values, <PyObject *>tup_id)):
            collector.emit(values, tup_id, stream, None, False)
    return 0


register_base(SpoutBase, False, try_spout_emit)
