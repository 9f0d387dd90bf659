"""Routing of emitted values to the tasks that subscribe to a stream.

    emit(values) ──► StreamRouter ─┬─ no subscriber, selected for output ──► RowSink (an Arrow row)
                                   ├─ one subscribing task ───────────────► its batch
                                   └─ else: each Route's grouping chooses ─► a Tuple per chosen task ──► batches

Threading law: producer's thread only.
"""

from copy import deepcopy

cimport cython
from cpython cimport array
from cpython.list cimport PyList_CheckExact
from cpython.object cimport PyObject
from libc.stdint cimport uint64_t

from cython_core.acking.acker cimport LOST, Roots, anchor_t, attempt_of_row, no_anchor, ps_acker_edge
from cython_core.arrow.row_batch cimport RowSink
from cython_core.queues.queues cimport BatchInserter, PendingEmits, insert_rows
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.routing.route cimport GROUPING_ALL, GROUPING_CUSTOM, GROUPING_DIRECT, GROUPING_GLOBAL, Route
from cython_core.tuples.tuple cimport Tuple, TupleSource, add_edge, named_values, new_edge, new_tuple, ring_edge

from cython_core.arrow.row_error import coded, shown

include "column_emit.pxi"


cdef array.array PLACES = array.array("i")


@cython.final
cdef class StreamRouter:
    """``StreamRouter(source, pending, routes, row_sink, direct, copies)``: without routes and row_sink,
    emits are only counted.

    ``direct``: the producer names the task of each tuple. A plain emit is then refused, and a direct one elsewhere.
    ``copies``: the values are deep-copied for every tuple that is sent, so that a bolt may change them.
    """

    def __init__(
        self,
        TupleSource source not None,
        PendingEmits pending not None,
        tuple routes=(),
        RowSink row_sink=None,
        bint direct=False,
        bint copies=False,
    ):
        cdef Route route
        self.source = source
        self.arity = len(source.fields)
        self.pending = pending
        self.direct = direct
        self.copies = copies
        for entry in routes:
            if not isinstance(entry, Route):
                raise TypeError(f"routes of {source!r} are Routes; Given: {entry!r}")
            route = <Route>entry
            if route.widest > self.arity:
                raise ValueError(f"a route of {source!r} selects value {route.widest - 1}; Given: {source.fields!r}")
            if (route.kind == GROUPING_DIRECT) != direct:
                raise ValueError(
                    f"direct routes belong to streams declared with direct=True, and no others do; "
                    f"Given: {source!r} with direct={bool(direct)}"
                )
        self.routes = routes
        self.row_sink = row_sink
        if len(routes) == 1 and not direct and not copies:
            route = <Route>routes[0]
            ring = (<BatchInserter>route.inserters[0]).ring
            if route.fan == 1 and route.kind != GROUPING_CUSTOM and ring is None:
                self.only = route.inserters[0]
            elif route.kind != GROUPING_ALL and route.kind != GROUPING_CUSTOM:
                self.chooses = route
        self.captured = None

    @property
    def captured(self):
        """A list that collects the values of every emit as plain tuples, or None."""
        return self.capture

    @captured.setter
    def captured(self, list values):
        self.capture = values
        self.straight = self.row_sink is None and values is None and not (self.only is None and self.chooses is None)

    cdef int route(self, object values, const anchor_t *anchor, list task_ids) except -1:
        """Takes one emit. `values`: tuple or list of the stream's arity. `anchor`: what each of its tuples is an edge
        of. `task_ids`: collects the targets, or None."""
        cdef object payload
        if self.direct:
            return self.refuse(
                "is direct: name a task that subscribes, emit(values, direct_task=3); a plain emit reaches no task",
                values,
            )
        self.emitted += 1  # hot
        if self.capture is not None:  # hot
            self.capture.append(tuple(values))
        if self.row_sink is not None:
            self.put_out(values, anchor)
            if not self.routes:
                return 0
        payload = named_values(values, self.source.values_class) if PyList_CheckExact(values) else values
        if self.only is not None and task_ids is None:
            self.transferred += 1
            return transfer(self.pending, self.only, new_edge(self.source, payload, anchor))
        return self.route_to_all(payload, anchor, task_ids)

    cdef int put_out(self, object values, const anchor_t *anchor) except -1:
        """An emit becomes a row of the output, unless the attempt that it belongs to has failed already."""
        cdef uint64_t attempt = attempt_of_row(anchor)
        if attempt != LOST:
            self.row_sink.append(values, offset_of_row(self.row_sink, anchor), attempt)
        return 0

    cdef int route_to_all(self, object payload, const anchor_t *anchor, list task_ids) except -1:
        cdef Route route
        cdef BatchInserter inserter
        cdef Py_ssize_t i
        for entry in self.routes:
            route = <Route>entry
            if route.kind == GROUPING_ALL:
                for i in range(route.fan):
                    inserter = <BatchInserter>route.targets[i]
                    if inserter.ring is not None:
                        transfer(self.pending, inserter, self.ring_tuple(inserter, payload, anchor, task_ids))
                        continue
                    self.transferred += 1
                    transfer(self.pending, inserter, new_edge(self.source, self.copied(payload), anchor))
                    if task_ids is not None:
                        task_ids.append(inserter.task)
            elif route.kind == GROUPING_CUSTOM:
                self.route_custom(route, payload, anchor, task_ids)
            else:
                inserter = route.choose(payload)
                self.transferred += 1
                transfer(self.pending, inserter, new_edge(self.source, self.copied(payload), anchor))
                if task_ids is not None:
                    task_ids.append(inserter.task)
        return 0

    cdef Tuple ring_tuple(self, BatchInserter inserter, object payload, const anchor_t *anchor, list task_ids):
        """One tuple for all readers of a ring: each takes a copy, which is an edge of its own."""
        cdef Tuple tup = new_tuple(self.source, payload, anchor.offset)
        cdef Py_ssize_t i
        tup.root = anchor.root
        tup.attempt = anchor.attempt
        tup.roots = None if anchor.roots is NULL else <Roots>anchor.roots
        tup.edge = ps_acker_edge(&self.source.acker.acker) if anchor.root is not NULL or tup.roots is not None else 0
        for i in range(len(inserter.ring.names)):
            self.transferred += 1
            add_edge(tup, ring_edge(tup.edge, i))
            if task_ids is not None:
                task_ids.append(int(inserter.ring.names[i]))
        return tup

    cdef int route_custom(self, Route route, object payload, const anchor_t *anchor, list task_ids) except -1:
        """Sends to the tasks that the route's object answers: each of them is a target, or nothing is sent."""
        cdef BatchInserter inserter
        for entry in self.chosen_by(route, payload):
            inserter = <BatchInserter>entry
            self.transferred += 1
            transfer(self.pending, inserter, new_edge(self.source, self.copied(payload), anchor))
            if task_ids is not None:
                task_ids.append(inserter.task)
        return 0

    cdef list chosen_by(self, Route route, object payload):
        """The inserters of the tasks that a custom route's object answers."""
        cdef list inserters = []
        answer = route.custom.choose_tasks(self.source.task, payload)
        if not isinstance(answer, (list, tuple)):
            raise self.wrong_answer(route, "a list of task ids", answer)
        for task in answer:
            try:
                inserters.append(route.by_task[task])
            except (KeyError, TypeError):  # TypeError: it does not hash
                raise self.wrong_answer(route, f"some of the task ids {sorted(route.by_task)}", answer) from None
        return inserters

    cdef Py_ssize_t most_rows(self, BatchSlice rows, Py_ssize_t quota) except -1:
        """How many rows of a batch may go at once: ``quota`` if a bolt takes them one by one, else what the queues'
        bytes allow."""
        cdef BatchInserter inserter
        cdef Py_ssize_t most = max(rows.count, <Py_ssize_t>1)
        if self.copies:
            return quota
        for route in self.routes:
            for inserter in (<Route>route).inserters:
                if inserter.queue is None or not inserter.queue.takes_batches:
                    return quota
                most = min(most, <Py_ssize_t>inserter.queue.byte_limit * rows.count // max(rows.weight, 1))
        return max(most, <Py_ssize_t>1)

    cdef int route_batch(self, BatchSlice rows, const anchor_t *anchor, object task) except -1:
        """Takes the emit of a batch; its rows go the ways that they would go one by one. ``task``: the direct one, or
        None."""
        cdef uint64_t attempt
        if self.direct != (task is not None):
            self.refuse("is direct: a batch goes to one task, too" if self.direct else "is not direct", task)
        if rows.count == 0:
            return 0
        if self.copies and self.routes:
            return self.route_copies(rows, anchor, task)
        self.emitted += rows.count
        if self.capture is not None:
            self.capture.extend(rows.between(0, rows.count))
        if self.row_sink is not None:
            batch = rows.batch()  # order: before, as Arrow lets others in
            attempt = attempt_of_row(anchor)
            if attempt != LOST:
                self.row_sink.add_batch(batch, attempt, offset_of_row(self.row_sink, anchor))
            if not self.routes:
                return 0
        rows.shared = len(self.routes) > 1
        for entry in self.routes:
            self.route_parts(<Route>entry, rows, anchor, task)
        return 0

    cdef int route_copies(self, BatchSlice rows, const anchor_t *anchor, object task) except -1:
        """Each tuple gets values of its own."""
        for values in rows.between(0, rows.count):
            if task is None:
                self.route(values, anchor, None)
            else:
                self.send_direct(values, anchor, task)
        return 0

    cdef int route_parts(self, Route route, BatchSlice rows, const anchor_t *anchor, object task) except -1:
        cdef BatchInserter inserter
        cdef dict parts
        if route.kind == GROUPING_DIRECT:
            inserter = route.by_task.get(task)
            return 0 if inserter is None else self.send_part(inserter, rows, anchor)
        if route.kind == GROUPING_ALL:
            rows.shared = rows.shared or route.fan > 1 or (<BatchInserter>route.targets[0]).ring is not None
            for inserter in route.inserters:
                self.send_part(inserter, rows, anchor)
            return 0
        if route.kind != GROUPING_CUSTOM and (route.fan == 1 or route.kind == GROUPING_GLOBAL):
            return self.send_part(<BatchInserter>route.targets[0], rows, anchor)
        parts = self.parts_of(route, rows)
        for inserter in route.inserters:
            places = parts.get(inserter.task)
            if places is not None:
                self.send_part(inserter, rows.at(places), anchor)
        return 0

    cdef dict parts_of(self, Route route, BatchSlice rows):
        """Task → places of the rows that it gets, by the very choice that is made for a tuple."""
        cdef dict parts = {}
        cdef Py_ssize_t i
        cdef BatchInserter inserter
        if route.kind != GROUPING_CUSTOM:
            return self.chosen_parts(route, rows)
        for i, values in enumerate(rows.between(0, rows.count)):
            payload = named_values(values, self.source.values_class)
            for chosen in self.chosen_by(route, payload):
                inserter = <BatchInserter>chosen
                parts.setdefault(inserter.task, array.array("i")).append(i)
        return parts

    cdef dict chosen_parts(self, Route route, BatchSlice rows):
        """Of a grouping that chooses one task for each row. Counted first, so that each place is written once."""
        cdef dict parts = {}
        cdef list payloads = None
        cdef Py_ssize_t i, to
        cdef BatchInserter inserter
        cdef array.array choices = array.clone(PLACES, rows.count, False)
        cdef array.array counts = array.clone(PLACES, route.fan, True)
        cdef array.array places
        if route.selected > 0:
            payloads = rows.between(0, rows.count, {route.positions[i] for i in range(route.selected)})
        for i in range(rows.count):
            inserter = route.choose(None if payloads is None else payloads[i])
            to = 0
            while route.targets[to] != <PyObject *>inserter:
                to += 1
            choices.data.as_ints[i] = <int>to
            counts.data.as_ints[to] += 1
        for to in range(route.fan):
            if counts.data.as_ints[to] > 0:
                places = array.clone(PLACES, counts.data.as_ints[to], False)
                parts[(<BatchInserter>route.targets[to]).task] = places
                counts.data.as_ints[to] = 0
                for i in range(rows.count):
                    if choices.data.as_ints[i] == to:
                        places.data.as_ints[counts.data.as_ints[to]] = <int>i
                        counts.data.as_ints[to] += 1
        return parts

    cdef int send_part(self, BatchInserter inserter, BatchSlice rows, const anchor_t *anchor) except -1:
        cdef Tuple tup
        if inserter.ring is not None:
            self.transferred += (rows.count - 1) * len(inserter.ring.names)
            tup = self.ring_tuple(inserter, rows, anchor, None)
        else:
            self.transferred += rows.count
            tup = new_edge(self.source, rows, anchor)
        if self.pending.count == 0 and insert_rows(inserter, tup):
            return 0
        return self.pending.push(inserter, tup)

    cdef object copied(self, object payload):
        """The values that one of several tuples carries: the very same, unless each gets its own."""
        if not self.copies:
            return payload
        try:
            return deepcopy(payload)
        except Exception as error:
            raise coded(
                TypeError,
                "PYSTORM_VALUE_DOES_NOT_FIT",
                f"topology.testing.always.try.serialize: the values of stream {self.source.stream!r} of "
                f"{self.source.component!r} cannot be copied ({type(error).__name__}: {error}): emit plain data; "
                f"Given: {shown(payload)}"
            ) from error

    cdef object wrong_answer(self, Route route, str wanted, object answer):
        kind = TypeError if not isinstance(answer, (list, tuple)) else ValueError
        return coded(
            kind,
            "PYSTORM_INVALID_RETURN_VALUE",
            f"{type(route.custom).__name__}.choose_tasks, the grouping of stream {self.source.stream!r} of "
            f"{self.source.component!r}, must answer {wanted}; Given: {shown(answer)}"
        )

    def route_direct(self, values, long long offset, task):
        """An emit of no tree to ``task`` on a direct stream, by hand. Returns and raises as the engine's own."""
        cdef anchor_t anchor = no_anchor(offset)
        return self.send_direct(values, &anchor, task)

    cdef int send_direct(self, object values, const anchor_t *anchor, object task) except -1:
        """Takes one direct emit: sends to ``task`` where it subscribes. Returns how many tuples were sent.

        Raises ValueError for a stream that is not direct, TypeError for a task that is no int. A selected output gets
        its row whatever the task is.
        """
        cdef Route route
        cdef BatchInserter inserter
        cdef object payload, target
        cdef int sent = 0
        if not self.direct:
            self.refuse("is not direct: declare it with Stream(..., direct=True) or emit without direct_task", task)
        if type(task) is not int:
            raise coded(
                TypeError,
                "PYSTORM_INVALID_DIRECT_TASK",
                f"a direct task is a task id, an int, as in [int(task) for task in context['task->component']]; "
                f"Given: {task!r}"
            )
        self.emitted += 1
        if self.capture is not None:
            self.capture.append(tuple(values))
        if self.row_sink is not None:
            self.put_out(values, anchor)
        payload = named_values(values, self.source.values_class) if PyList_CheckExact(values) else values
        for entry in self.routes:
            route = <Route>entry
            target = route.by_task.get(task)
            if target is not None:
                self.transferred += 1
                inserter = <BatchInserter>target
                transfer(self.pending, inserter, new_edge(self.source, self.copied(payload), anchor))
                sent += 1
        return sent

    cdef int refuse(self, str why, object given) except -1:
        raise coded(
            ValueError,
            "PYSTORM_INVALID_DIRECT_TASK",
            f"stream {self.source.stream!r} of {self.source.component!r} {why}; Given: {shown(given)}",
        )
