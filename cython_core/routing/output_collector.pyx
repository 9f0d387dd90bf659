"""``emit``, ``ack`` and ``fail`` of spouts and bolts, compiled.

    class MyBolt(Bolt)  ──inherits──►  BoltBase.emit (one call into C)  ──►  BoltOutputCollector  ──►  StreamRouter

The bases that user classes inherit have no C fields: CPython 3.11 keeps the attributes of an instance inline (and its
attribute opcodes specialised) only where no base adds fields of its own, and a component that reads three attributes
per tuple would pay 40 ns for them. So the state is in a collector beside the instance, and the methods find it through
``running``, the collector of the component that the scheduler has called; anything else takes the slower way by the
instance's ``_pystorm_collector`` attribute.

Invariant: plain emit ≡ general emit. A plain emit (positional, default stream, no options) is taken by
``try_spout_emit`` or ``try_bolt_emit`` below; all others by the ``emit`` of the bases. The former is only sooner: the
same rows, anchors, order, counters and errors. tests/core/routing/test_plain_emit.py runs both on drawn emits.

Threading law: a collector belongs to the thread of its executor.
"""

import logging
import weakref

cimport cython
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.object cimport PyObject, PyObject_GenericSetAttr
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_SIZE
from libc.stdint cimport uint32_t, uint64_t

cdef extern from "Python.h":
    void ps_incref "Py_INCREF"(PyObject *)
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    bint ps_is_tuple "PyTuple_Check"(PyObject *)
    bint ps_is_list "PyList_CheckExact"(PyObject *)
    Py_ssize_t ps_size "Py_SIZE"(PyObject *)


from cython_core.acking.acker cimport (
    anchor_t, PS_ROOT_EMIT_RAISED, ack_edge, fail_root, no_anchor, ps_acker_edge, ps_acker_fail,
    ps_acker_open, ps_acker_reset, ps_root, roots_of,
)
from cython_core.routing.batch_slice cimport BatchSlice, slice_of
from cython_core.routing.column_emit cimport (
    check_fields, columns_of, emit_one_by_one, length_of, refill, send_columns,
)
from cython_core.routing.stream_router cimport StreamRouter, send_straight, transfer
from cython_core.tuples.tuple cimport ACKED, FAILED, OPEN, Tuple, TupleBatch, named_values, new_tuple, tuple_named

import pyarrow as pa

from cython_core.arrow.row_error import coded, shown


cdef extern from "cython_core/routing/own_emit.h":
    ctypedef int (*ps_try_emit)(PyObject *, PyObject *, PyObject *) except -1
    int ps_own_emit_set(ps_try_emit spout, ps_try_emit bolt, object spout_base, object bolt_base) except -1
    int ps_own_emit(object cls, bint is_bolt) except -1
    bint ps_is_own_emit(object bound, bint is_bolt)
    int ps_own_emit_back(object cls, bint is_bolt) except -1


logger = logging.getLogger("pystorm.worker")

cdef OutputCollector running = None
cdef str ATTRIBUTE = "_pystorm_collector"
cdef str LATE = "_pystorm_late_emit_reported"
cdef str PROTOCOL = "_pystorm_sends"
cdef str PLAIN = "_pystorm_plain"  # of an `emit` in Python that does what the engine's does: itself
cdef tuple ROWS = (list, tuple, dict, set)  # and iterators: what has the look of rows where a call returns it
# Fewer: of threads that go on, less is reported. More: their errors fill the memory until the next micro-batch.
cdef Py_ssize_t MOST_LATE_EMITS = 10


cdef int set_current_collector(OutputCollector collector) except -1:
    """Makes this the collector that its component's methods find at once."""
    global running
    running = collector
    return 0


cdef OutputCollector running_for(object component):
    """The collector of the component if that is what runs now, else None."""
    return running if running is not None and running.instance is component else None


cdef int refuse_rows(OutputCollector collector, str method, object answer) except -1:
    """Raises what ``lost_by`` answers, if anything."""
    error = collector.lost_by(method, answer)
    if error is not None:
        raise error
    return 0


cdef object running_instance():
    """The component that was called last, or None."""
    return None if running is None else running.instance


cdef class OutputCollector:
    """``OutputCollector(instance, routers)``: wires a component; ``routers`` maps stream names to StreamRouters."""

    def __init__(self, instance, dict routers not None):
        self.instance = instance
        self.routers = routers
        self.default_router = routers.get("default")
        for router in routers.values():
            self.acker = (<StreamRouter>router).source.acker
        PyObject_GenericSetAttr(instance, ATTRIBUTE, self)
        self.given_class = give_own_emit(type(instance), isinstance(self, BoltOutputCollector))
        self.note_emit()

    def __reduce__(self):
        """A component's state may be pickled: its way out stays where it is."""
        return type(None), ()

    def detach(self):
        """What the component emits from now on is refused."""
        if self.given_class is not None:
            take_own_emit(self.given_class, isinstance(self, BoltOutputCollector))
            self.given_class = None
        if getattr(self.instance, ATTRIBUTE, None) is self:
            PyObject_GenericSetAttr(self.instance, ATTRIBUTE, None)
        if running is self:
            set_current_collector(None)

    cdef int note_emit(self) except -1:
        """Notes whether the component has another emit than the engine's, which is to see every row."""
        bound = getattr(self.instance, "emit", None)
        plain = getattr(bound, PLAIN, bound) is getattr(bound, "__func__", None)
        self.emits_itself = plain or ps_is_own_emit(bound, isinstance(self, BoltOutputCollector))
        return 0

    cdef StreamRouter router_of(self, object stream):
        cdef StreamRouter router = self.default_router if stream is None else self.routers.get(stream)
        if router is None:
            raise coded(
                ValueError,
                "PYSTORM_UNKNOWN_STREAM",
                f"Unknown stream ID: {type(self.instance).__name__} declares the streams "
                f"{', '.join(repr(name) for name in self.routers) or 'none'} in `outputs`; declare the fields, such as "
                f"{example_of(stream)}. "
                f"Given: {shown('default' if stream is None else stream)}"
            )
        return router

    cdef object lost_by(self, str method, object answer):
        """A call that has emitted nothing returned this: the exception to raise if it has the look of rows and is to be
        refused; else None, and ``returned`` says it."""
        if not self.routers or not (isinstance(answer, ROWS) or hasattr(type(answer), "__next__")):
            return None
        if isinstance(answer, ROWS) and not answer:
            return None  # no rows are lost
        text = (
            f"{method}() returned a {type(answer).__name__} and emitted nothing: rows leave by emit alone, "
            f"self.emit([...]) for each of them. Given: {shown(answer)}"
        )
        if self.refuses_returns:
            return coded(TypeError, "PYSTORM_ROWS_RETURNED", text)
        if self.returned is None:
            self.returned = text
        return None

    cdef int send(self, object values, object stream, const anchor_t *anchor, list task_ids) except -1:
        cdef StreamRouter router = self.default_router
        if stream is not None or router is None:
            router = self.router_of(stream)
        if PyTuple_Check(values) and PyTuple_GET_SIZE(values) == router.arity:
            router.route(values, anchor, task_ids)
        else:
            router.route(fitting(router, values), anchor, task_ids)
        self.emits += 1
        return 0

    cdef object send_with(self, object values, object stream, const anchor_t *anchor, object direct_task,
                          bint need_task_ids):
        """An emit, perhaps to a direct task, perhaps of a sender that wants to know the tasks."""
        cdef list task_ids = None
        cdef StreamRouter router
        if direct_task is None:
            task_ids = [] if need_task_ids else None
            self.send(values, stream, anchor, task_ids)
        else:
            router = self.router_of(stream)
            sent = router.send_direct(fitting(router, values), anchor, direct_task)
            task_ids = [direct_task] if need_task_ids and sent > 0 else [] if need_task_ids else None
            self.emits += 1
        return task_ids


cdef str example_of(object stream):
    """How a class declares that stream."""
    if stream is None or stream == "default":
        return "outputs = ['word', 'count']"
    return f"outputs = [Stream(['word', 'count'], name={stream!r})]"


# Classes that have an `emit` of their own from here → collectors that use it.
own_emits = weakref.WeakKeyDictionary()


cdef object give_own_emit(object cls, bint is_bolt):
    """The class, where it has an emit of its own now; else None. Not where that would come before another base's emit
    in a subclass."""
    if cls not in own_emits and (hides_in_subclasses(cls) or not ps_own_emit(cls, is_bolt)):
        return None
    own_emits[cls] = own_emits.get(cls, 0) + 1
    return cls


cdef bint hides_in_subclasses(object cls) except -1:
    for subclass in type.__subclasses__(cls):
        if hides_another(cls, subclass) or hides_in_subclasses(subclass):
            return True
    return False


cdef bint hides_another(object cls, object subclass) except -1:
    """Whether an emit of ``cls`` comes before the one that ``subclass`` would have without it, the engine's apart."""
    seen = False
    for each in subclass.__mro__:
        if each is cls:
            seen = True
        elif "emit" in vars(each) and each not in own_emits:
            return seen and each is not SpoutBase and each is not BoltBase
    return False


cdef int take_own_emit(object cls, bint is_bolt) except -1:
    used = own_emits.get(cls, 0) - 1
    if used > 0:
        own_emits[cls] = used
    elif used == 0:
        del own_emits[cls]
        ps_own_emit_back(cls, is_bolt)
    return 0


def has_subclass(cls):
    """Called for every new component class: no emit that a base of it was given comes before another one."""
    for base in cls.__mro__[1:]:
        if base in own_emits and hides_another(base, cls):
            del own_emits[base]
            ps_own_emit_back(base, issubclass(base, BoltBase))


cdef object fitting(StreamRouter router, object values):
    """The values, a list or tuple of the stream's arity. Raises TypeError and ValueError."""
    cdef Py_ssize_t n
    if PyTuple_Check(values):
        n = PyTuple_GET_SIZE(values)
    elif PyList_CheckExact(values):
        n = PyList_GET_SIZE(values)
    elif isinstance(values, list):
        values = tuple(values)
        n = PyTuple_GET_SIZE(values)
    else:
        raise no_list(values)
    if n != router.arity:
        raise coded(
            ValueError,
            "PYSTORM_WRONG_NUMBER_OF_FIELDS",
            f"Tuple created with wrong number of fields: stream {router.source.stream!r} of "
            f"{router.source.component!r} declares {list(router.source.fields)}; Given: {shown(values)}"
        )
    return values


@cython.final
cdef class SpoutOutputCollector(OutputCollector):
    """A spout task's way out, the offset range that its tuple ids are checked against, and the roots of its trees."""

    cdef object emit(self, object values, object tup_id, object stream, object direct_task, bint need_task_ids):
        cdef anchor_t anchor = no_anchor(self.last_offset)
        cdef StreamRouter router
        if tup_id is None:
            return self.send_with(values, stream, &anchor, direct_task, need_task_ids)
        if not self.tracks:
            answer = self.send_with(values, stream, &anchor, direct_task, need_task_ids)
            if not self.bounded:
                if self.roots.notifies_acks:
                    self.instance.ack(tup_id)  # as in Storm, where no acker runs
                self.untracked += 1
            return answer
        router = self.router_of(stream)
        if self.bounded and not router.routes:
            return self.send_with(values, stream, &anchor, direct_task, need_task_ids)  # it cannot fail
        values = fitting(router, values)
        if router.routes and PyList_CheckExact(values):
            values = named_values(values, router.source.values_class)
        where = None if stream is None and direct_task is None else (stream, direct_task)
        return self.emit_rooted(values, tup_id, where, 1, need_task_ids)

    cdef int emit_columns(self, tuple columns, tuple ids, object stream) except -1:
        """As many emits as the columns have rows, each with its id if there are ids."""
        cdef StreamRouter router = self.router_of(stream)
        cdef Py_ssize_t rows = length_of(columns, ids)
        cdef list row = [None] * len(columns)
        cdef bint untracked = self.bounded and (not self.tracks or not router.routes)
        cdef bint straight = router is self.default_router and self.tracks
        cdef anchor_t anchor = no_anchor(self.last_offset)
        cdef object tup_id = None
        cdef object values
        cdef Py_ssize_t i
        check_fields(router, columns)
        if ids is None and not self.bounded:
            return send_columns(router, columns, rows, &anchor, &self.emits)
        for i in range(rows):
            if ids is not None:
                tup_id = ids[i]
            if self.bounded:
                self.check_range(tup_id)
            refill(row, columns, i)
            if untracked:
                anchor.offset = self.last_offset
                self.send(row, stream, &anchor, None)
                continue
            values = named_values(row, router.source.values_class)
            if not (straight and tup_id is not None and
                    send_rooted(<PyObject *>self, <PyObject *>values, <PyObject *>tup_id)):
                self.emit(values, tup_id, stream, None, False)
        return 0

    cdef object emit_rooted(self, object values, object tup_id, object where, uint32_t emits, bint need_task_ids):
        """The emit number ``emits`` of a tuple; ``where``: (stream, direct task), None for the default stream."""
        cdef anchor_t anchor
        # Order: the emit itself is an edge, until all others are there.
        cdef uint64_t edge = ps_acker_edge(&self.acker.acker)
        cdef ps_root *root = self.open_root(<PyObject *>values, <PyObject *>tup_id, <PyObject *>where, edge, emits)
        anchor.root, anchor.roots, anchor.attempt, anchor.offset = root, NULL, root.attempt, self.last_offset
        stream, direct_task = (None, None) if where is None else where
        try:
            answer = self.send_with(values, stream, &anchor, direct_task, need_task_ids)
        except BaseException:
            # The spout is not notified, though some of the tuples may be on their way.
            ps_acker_fail(&self.acker.acker, root, anchor.attempt, PS_ROOT_EMIT_RAISED)
            raise
        self.rooted += 1
        ack_edge(&self.acker.acker, root, anchor.attempt, edge)
        return answer

    cdef int emit_rows(self, BatchSlice rows, object tup_id, object where, uint32_t emits) except -1:
        """The emit number ``emits`` of a batch, which is one tree; ``where``: as of ``emit_rooted``. Without an id, and
        without a range, it is none."""
        cdef anchor_t anchor = no_anchor(self.last_offset)
        cdef ps_root *root = NULL
        cdef uint64_t edge = 0
        stream, direct_task = (None, None) if where is None else where
        cdef StreamRouter router = self.router_of(stream)
        check_columns(router, rows)
        if self.tracks and (len(router.routes) > 0 if self.bounded else tup_id is not None):
            # Order: the emit itself is an edge, until all others are there.
            edge = ps_acker_edge(&self.acker.acker)
            root = self.open_root(<PyObject *>rows, <PyObject *>tup_id, <PyObject *>where, edge, emits)
            anchor.root, anchor.attempt = root, root.attempt
            self.rooted += 1
        try:
            router.route_batch(rows, &anchor, direct_task)
        except BaseException:
            if root is not NULL:
                ps_acker_fail(&self.acker.acker, root, anchor.attempt, PS_ROOT_EMIT_RAISED)
            raise
        self.emits += rows.count
        if root is not NULL:
            ack_edge(&self.acker.acker, root, anchor.attempt, edge)
        elif tup_id is not None and not self.bounded:
            if self.roots.notifies_acks:
                self.instance.ack(tup_id)  # as in Storm, where no acker runs
            self.untracked += 1
        return 0

    cdef ps_root *open_root(self, PyObject *values, PyObject *tup_id, PyObject *where, uint64_t edge,
                            uint32_t emits) except NULL:
        cdef ps_root *root = ps_acker_open(&self.acker.acker, &self.roots, edge)
        if root is NULL:
            raise MemoryError("no memory for another tuple tree")
        ps_incref(values)
        root.values = values
        ps_incref(tup_id)
        root.id = tup_id
        if where is not <PyObject *>None:  # hot
            ps_incref(where)
            root.where = where
        root.offset = self.last_offset
        root.emits = emits
        root.generation = self.generation
        return root

    cdef int check_range(self, object tup_id) except -1:
        cdef long long offset
        cdef int beyond = 0
        if type(tup_id) is not int:
            raise coded(
                ValueError,
                "PYSTORM_OFFSET_MISSING",
                f"{type(self.instance).__name__} is a PartitionedSpout: emit(values, tup_id=offset) needs the tuple's "
                f"offset, an int in [{self.start}, {self.end}); Given: {shown(tup_id)}"
            )
        offset = PyLong_AsLongLongAndOverflow(tup_id, &beyond)
        if beyond != 0 or not self.start <= offset < self.end:
            raise coded(
                ValueError,
                "PYSTORM_OFFSET_OUT_OF_RANGE",
                f"{type(self.instance).__name__} emitted an offset outside of its range [{self.start}, {self.end}): "
                f"next_tuple() returns False once the range is exhausted; Given: {shown(tup_id)}"
            )
        self.last_offset = offset
        if offset > self.highest_offset:
            self.highest_offset = offset
        return 0


@cython.final
cdef class BoltOutputCollector(OutputCollector):
    """A bolt task's way out, the tuple or batch that it is working on, and the verdicts that it gave."""

    def __cinit__(self):
        self.auto_anchor = True

    cdef object anchor_to_current(self, anchor_t *anchor):
        """What an emit without ``anchors`` belongs to; its offset: that of its first anchor that has one. Returns what
        keeps it alive."""
        cdef object roots = None
        if self.batch is not None:
            roots = self.anchor_to_batch(anchor)
        elif self.current is not None and not (self.batching and self.current.source.task < 0):
            if self.auto_anchor and self.batches is None:
                check_open(self, self.current)
            anchor_to_tuple(anchor, self.current)
            roots = self.current.roots
        elif self.batching:
            # An override of process_batches says here what it works on, as pystorm's own does.
            roots = self.anchor_to(getattr(self.instance, "_current_tups", None) or (), anchor)
        if not self.auto_anchor:
            anchor.root, anchor.roots = NULL, NULL
        return roots

    cdef object anchor_to_batch(self, anchor_t *anchor):
        """Once per batch: only a verdict can change what an emit may be anchored to."""
        cdef unsigned long long verdicts = self.acks + self.fails
        if not self.batch_anchored or (self.auto_anchor and self.batch_verdicts != verdicts):
            self.batch_anchor = no_anchor(-1)
            self.batch_roots = self.anchor_to(
                self.batch, &self.batch_anchor, self.auto_anchor and self.batches is None
            )
            self.batch_verdicts = verdicts
            self.batch_anchored = True
        anchor[0] = self.batch_anchor
        return self.batch_roots

    cdef object anchor_to(self, object anchors, anchor_t *anchor, bint must_be_open=True):
        cdef Tuple tup
        cdef dict found = {}
        cdef object roots = None
        if PyList_CheckExact(anchors) and PyList_GET_SIZE(anchors) == 1 and isinstance(anchors[0], Tuple):
            return self.anchor_to_one(<Tuple>anchors[0], anchor, must_be_open)
        if isinstance(anchors, (Tuple, str, bytes)) or not hasattr(anchors, "__iter__"):
            raise coded(
                TypeError,
                "PYSTORM_INVALID_ANCHOR",
                f"{type(self.instance).__name__}.emit: anchors is a list of Tuples or of ids; Given: {shown(anchors)}"
            )
        for given in anchors:
            tup = <Tuple>given if isinstance(given, Tuple) else tuple_named(given)
            if tup is None:
                raise coded(
                    ValueError,
                    "PYSTORM_INVALID_ANCHOR",
                    f"{type(self.instance).__name__}.emit: an anchor is a Tuple that the bolt still holds, or its id; "
                    f"Given: {shown(given)}"
                )
            if must_be_open:
                check_open(self, tup)
            if tup.source.acker is self.acker:
                add_roots(found, tup)
            if anchor.offset == -1:
                anchor.offset = tup.offset
        if len(found) == 1:
            (anchor.attempt, root), = found.items()
            anchor.root = <ps_root *><size_t>root
        elif found:
            roots = roots_of(self.acker, list(found.values()), list(found))
            anchor.roots = <PyObject *>roots
        return roots

    cdef object anchor_to_one(self, Tuple tup, anchor_t *anchor, bint must_be_open):
        if must_be_open:
            check_open(self, tup)
        if tup.source.acker is not self.acker:
            anchor.offset = tup.offset
            return None
        anchor_to_tuple(anchor, tup)
        return tup.roots

    cdef int begin_batch(self, list batch, bint tracked, long long offset) except -1:
        """The bolt works on all of these. ``tracked``: some are in trees; ``offset``: the first that one has, or -1."""
        self.batch = batch
        self.batch_anchored = not tracked
        if not tracked:
            self.batch_anchor = no_anchor(offset)
            self.batch_verdicts = self.acks + self.fails
        return 0

    cdef int end_batch(self) except -1:
        self.batch = None
        self.batch_roots = None
        self.batch_anchored = False
        return 0

    cdef int ack(self, Tuple tup) except -1:
        if tup.verdict != OPEN:
            self.duplicate_verdicts += 1
            return 0
        tup.verdict = ACKED
        self.acks += tup.source.task >= 0  # ticks do not count
        if tup.root is not NULL:
            ack_edge(&tup.source.acker.acker, tup.root, tup.attempt, tup.edge)
        elif tup.roots is not None:
            tup.roots.ack_edge(tup.edge)
        return 0

    cdef int fail(self, Tuple tup, str method="fail", object cause=None) except -1:
        if tup.verdict != OPEN:
            self.duplicate_verdicts += 1
            return 0
        cdef Py_ssize_t rows = (<TupleBatch>tup.payload).count if isinstance(tup.payload, TupleBatch) else 1
        tup.verdict = FAILED
        self.fails += rows if tup.source.task >= 0 else 0
        if tup.root is not NULL or tup.roots is not None:
            reason = (self.component, self.task, method, tup, cause)
            if tup.root is not NULL:
                fail_root(tup.source.acker, tup.root, tup.attempt, reason)
            else:
                tup.roots.fail(reason)
        elif tup.offset != -1:
            if self.failed is None:
                self.failed = tup
        elif tup.source.task >= 0:
            self.untracked_fails += rows
        return 0

    cdef int settle_batch(self, list tups, list failed, str method="fail", object cause=None) except -1:
        """The verdict of a batch: of the one tuple that carried it, or of those that its rows were. ``failed``: for
        each row, whether it has failed; None: none has."""
        cdef Tuple tup
        cdef Py_ssize_t i, lost
        cdef BatchSlice rows
        if len(tups) == 1 and isinstance((<Tuple>tups[0]).payload, BatchSlice):
            tup = <Tuple>tups[0]
            rows = <BatchSlice>tup.payload
            if failed is None:
                if tup.verdict == OPEN:
                    self.acks += rows.count - 1
                    self.ack(tup)
                return 0
            lost = sum(failed)
            if tup.verdict == OPEN and lost > 0:
                tup.payload = rows.losing(failed)
                self.fails -= <unsigned long long>(rows.count - lost)  # that `fail` counts
            return self.fail(tup, method, cause) if lost > 0 else 0
        for i in range(len(tups)):
            tup = <Tuple>tups[i]
            if failed is not None and failed[i]:
                self.fail(tup, method, cause)
            elif failed is None and tup.verdict == OPEN:
                self.ack(tup)
        return 0

    cdef int reset_timeout(self, Tuple tup) except -1:
        if tup.root is not NULL:
            tup.source.acker.read_clock_now()
            if ps_acker_reset(&tup.source.acker.acker, tup.root, tup.attempt) < 0:
                raise MemoryError("no memory for a timer")
        elif tup.roots is not None:
            tup.source.acker.read_clock_now()
            tup.roots.reset_timeout()
        return 0

    cdef int refuse_late(self, object values) except -1:
        """An emit in no tree between two micro-batches, by a thread of the bolt's: neither of them would replay it.

        Order: written down, too, as the exception in the thread may never be seen.
        """
        error = coded(
            RuntimeError,
            "PYSTORM_EMIT_OUTSIDE_OF_RUN",
            f"{name_of(self.instance)}.emit by a thread of its own, between two micro-batches: emit before "
            f"process_tick() has returned for the tick that ends one, or anchor to a tuple that has no verdict yet; "
            f"Given: {shown(values)}"
        )
        if self.late_emits is None:
            self.late_emits = []
        if len(self.late_emits) < MOST_LATE_EMITS:
            self.late_emits.append(error)
        raise error


cdef int anchor_to_tuple(anchor_t *anchor, Tuple tup) noexcept:
    anchor.root = tup.root
    anchor.attempt = tup.attempt
    anchor.roots = NULL if tup.roots is None else <PyObject *>tup.roots
    anchor.offset = tup.offset
    return 0


cdef int add_roots(dict found, Tuple tup) except -1:
    """Adds the roots of an anchor, as attempt → address, each once, in order.

    Of one slot there may be two attempts: one that has failed, and the one that came after it and must fail as well if
    their row is none.
    """
    cdef Py_ssize_t i
    if tup.root is not NULL:
        found[tup.attempt] = <size_t>tup.root
    elif tup.roots is not None:
        for i in range(tup.roots.count):
            found[tup.roots.attempts[i]] = <size_t>tup.roots.roots[i]
    return 0


cdef BatchSlice batch_given(object batch):
    """What ``emit_batch`` was given: a record batch, or what becomes one by Arrow's C interface."""
    if not isinstance(batch, pa.RecordBatch):
        if not hasattr(batch, "__arrow_c_array__"):
            raise coded(
                TypeError,
                "PYSTORM_EMIT_NOT_A_LIST",
                f"emit_batch takes a pyarrow.RecordBatch; of a table, emit each of its to_batches(). "
                f"Given: {shown(batch)}"
            )
        batch = pa.record_batch(batch)
    return slice_of(batch)


cdef int check_columns(StreamRouter router, BatchSlice rows) except -1:
    names = rows.reader.batch.schema.names
    if len(names) != router.arity:
        raise coded(
            ValueError,
            "PYSTORM_WRONG_NUMBER_OF_FIELDS",
            f"a batch has a column for each field: stream {router.source.stream!r} of {router.source.component!r} "
            f"declares {list(router.source.fields)}; Given: {shown(names)}"
        )
    return 0


cdef int check_open(BoltOutputCollector collector, Tuple anchor) except -1:
    if anchor.verdict != OPEN:
        raise coded(
            ValueError,
            "PYSTORM_ANCHOR_CLOSED",
            f"{name_of(collector.instance)}.emit: Anchored onto {anchor.id} after ack/fail: emit first, then "
            f"{'ack' if anchor.verdict == ACKED else 'fail'}, or emit with anchors=[]; Given: {shown(anchor)}"
        )
    return 0


cdef object no_list(object values):
    """pystorm's error for an emit of something else, in its words, and the call that was meant."""
    cdef str value = shown(values, 40) if isinstance(values, (str, bytes, int, float)) else "value"
    return coded(
        TypeError,
        "PYSTORM_EMIT_NOT_A_LIST",
        f"All Tuples must be either lists or tuples, received {type(values)!r} instead. One value for each field: "
        f"emit([{value}]) or emit(({value},)). Given: {shown(values)}",
    )


cdef str name_of(object component):
    """Component and task, and the class; the class alone before the component was started."""
    cls = type(component).__name__
    task = getattr(component, "task_id", None)
    return cls if task is None else f"component {getattr(component, 'component_name', '')!r}, task {task}: {cls}"


cdef OutputCollector collector_or_none(object component):
    """The slow way, for calls that do not come from inside the scheduler's call."""
    if running is not None and running.instance is component:
        return running
    collector = getattr(component, ATTRIBUTE, None)
    return collector if isinstance(collector, OutputCollector) else None


cdef OutputCollector collector_of(object component, object given=None):
    """As ``collector_or_none``. Raises RuntimeError outside of a topology; ``given``: what was to be emitted."""
    cdef OutputCollector collector = collector_or_none(component)
    if collector is None:
        text = (
            f"{name_of(component)}.emit, ack or fail while the component is not in a running topology: emit from "
            f"initialize() on, not from the constructor and not after cleanup(); in a unit test run it in a topology"
            f"{'' if given is None else f'; Given: {shown(given)}'}"
        )
        if given is not None and getattr(component, "task_id", None) is not None:
            warn_of_late_emit(component, text)
        raise coded(RuntimeError, "PYSTORM_EMIT_OUTSIDE_OF_RUN", text)
    return collector


cdef int warn_of_late_emit(object component, str text) except -1:
    """Once per component: the exception in the thread may never be seen."""
    if getattr(component, LATE, False):
        return 0
    PyObject_GenericSetAttr(component, LATE, True)
    logger.warning("%s", text)
    return 0


cdef bint send_by_protocol(object component, dict message) except -1:
    """Whether it is in no topology and its ``_pystorm_sends`` (of a unit test, the journal) took the message."""
    if collector_or_none(component) is not None:
        return False
    sends = getattr(component, PROTOCOL, None)
    return sends is not None and sends(message)


cdef object emit_by_protocol(object component, object values, dict more, object stream, object direct_task,
                             bint need_task_ids):
    """Sends what pystorm's ``emit`` would send. Raises as ``collector_of`` if nothing takes the message."""
    if not isinstance(values, (list, tuple)):
        raise no_list(values)
    cdef dict message = {"command": "emit", "tuple": values, **more}
    if stream is not None:
        message["stream"] = stream
    if direct_task is not None:
        message["task"] = direct_task
    if not need_task_ids:
        message["need_task_ids"] = False
    if not send_by_protocol(component, message):
        collector_of(component, values)
    if not need_task_ids:
        return None
    return [direct_task] if direct_task is not None else component.read_task_ids()


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
        if found is None:
            more = {} if tup_id is None else {"id": tup_id}
            return emit_by_protocol(self, tup, more, stream, direct_task, need_task_ids)
        collector = <SpoutOutputCollector?>found
        if collector.bounded:
            collector.check_range(tup_id)
        return collector.emit(tup, tup_id, stream, direct_task, need_task_ids)

    def emit_batch(self, batch, tup_id=None, stream=None, direct_task=None):
        """Emits the rows of a batch. Does not block. Bolts of rows get them one by one, an ``ArrowBolt`` as batches.

        Column i is field i of the stream. The rows are one tuple tree: ``ack`` or ``fail`` is called once for all.

        Args:
            batch (pyarrow.RecordBatch): the rows, or what has ``__arrow_c_array__``.
            tup_id (Any): as of ``emit``; of a partitioned spout the offset of the last row. Defaults to None.
            stream (str): the stream. Defaults to "default".
            direct_task (int): on a direct stream, the id of the task that gets it. Defaults to None.

        Raises:
            TypeError: no batch.
            ValueError: another number of columns than the stream has fields, and as ``emit``.
            RuntimeError: the component is in no running topology.
        """
        cdef SpoutOutputCollector collector
        cdef BatchSlice rows = batch_given(batch)
        if collector_or_none(self) is None:
            values = rows.between(0, rows.count)
            for i, row in enumerate(values):
                self.emit(row, tup_id if i + 1 == len(values) else None, stream, direct_task)
            return
        collector = <SpoutOutputCollector?>collector_of(self, batch)
        if collector.bounded:
            collector.check_range(tup_id)
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
        if found is None or not found.emits_itself:
            emit_one_by_one(self, given, ids, {} if stream is None else {"stream": stream})
        else:
            (<SpoutOutputCollector?>found).emit_columns(given, ids, stream)

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
        if collector.between_runs and anchor.root is NULL and anchor.roots is NULL:
            collector.refuse_late(tup)
        return collector.send_with(tup, stream, &anchor, direct_task, need_task_ids)

    def emit_batch(self, batch, stream=None, anchors=None, direct_task=None):
        """Emits the rows of a batch. Does not block. Bolts of rows get them one by one, an ``ArrowBolt`` as batches.

        Column i is field i of the stream. A stream that is an output hands the batch on without conversion.

        Args:
            batch (pyarrow.RecordBatch): the rows, or what has ``__arrow_c_array__``.
            stream (str): the stream. Defaults to "default".
            anchors (list[Tuple | str]): as of ``emit``. Defaults to None: what the bolt works on.
            direct_task (int): on a direct stream, the id of the task that gets it. Defaults to None.

        Raises:
            TypeError: no batch.
            ValueError: another number of columns than the stream has fields, and as ``emit``.
            RuntimeError: the component is in no running topology, or between two micro-batches.
        """
        cdef BoltOutputCollector collector
        cdef BatchSlice rows = batch_given(batch)
        cdef StreamRouter router
        cdef anchor_t anchor = no_anchor(-1)
        cdef object _alive
        if collector_or_none(self) is None:
            for row in rows.between(0, rows.count):
                self.emit(row, stream, anchors, direct_task)
            return
        collector = <BoltOutputCollector?>collector_of(self, batch)
        router = collector.router_of(stream)
        check_columns(router, rows)
        if anchors is None:
            _alive = collector.anchor_to_current(&anchor)
        else:
            _alive = collector.anchor_to(anchors, &anchor)
        if collector.between_runs and anchor.root is NULL and anchor.roots is NULL:
            collector.refuse_late(batch)
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
        if collector.between_runs and anchor.root is NULL and anchor.roots is NULL:
            collector.refuse_late(columns)
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
        settle(self, "ack", tup, False)

    def fail(self, tup):
        """Fails the tuple: its spout's ``fail`` is called for each tree that it is part of.

        A partitioned spout's tuple is emitted again, ``topology.max.spout.retries`` times. The first verdict of a
        tuple counts, a second has no effect.

        Args:
            tup (Tuple | str): the tuple, or its id.

        Raises:
            ValueError: None.
            RuntimeError: the component is in no running topology.
        """
        settle(self, "fail", tup, True)

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
        collector.settle_batch(tuples_of(collector, "ack", tup), None)
        del collector.batches[id(tup)]

    def fail(self, tup, rows=None):
        """Fails rows of a batch: their spout emits them again, or gives them up, each by itself.

        What is emitted for a batch belongs to all its rows, so it is taken back if one of them fails. The others then
        come again, too, which is no attempt of theirs.

        Args:
            tup (pyarrow.RecordBatch | Tuple): the batch that ``process_batch`` was given, itself; or a tick.
            rows (pyarrow.BooleanArray | list[bool]): for each row, whether it fails. Defaults to None: all do.

        Raises:
            ValueError: another batch, or a mask of another length.
            RuntimeError: the component is in no running topology.
        """
        if not isinstance(tup, pa.RecordBatch):
            return BoltBase.fail(self, tup)
        cdef BoltOutputCollector collector = <BoltOutputCollector?>collector_of(self)
        cdef list tups = tuples_of(collector, "fail", tup)
        mask = [True] * tup.num_rows if rows is None else list(rows.to_pylist() if hasattr(rows, "to_pylist") else rows)
        if len(mask) != tup.num_rows:
            raise coded(
                ValueError,
                "PYSTORM_NOT_A_TUPLE",
                f"{name_of(self)}.fail: a mask has a value for each of the {tup.num_rows} rows; Given: {shown(rows)}",
            )
        collector.settle_batch(tups, [bool(failed) for failed in mask])
        if not any([(<Tuple>each).verdict == OPEN for each in tups]):
            del collector.batches[id(tup)]


cdef list tuples_of(BoltOutputCollector collector, str method, object batch):
    """What has brought the rows of a batch that the bolt works on."""
    found = None if collector.batches is None else collector.batches.get(id(batch))
    if found is None:
        raise coded(
            ValueError,
            "PYSTORM_NOT_A_TUPLE",
            f"{name_of(collector.instance)}.{method} takes the batch that process_batch was given, itself, once; "
            f"Given: {shown(batch)}",
        )
    return found[1]


cdef bint verdict_by_protocol(object component, str method, object given) except -1:
    """``send_by_protocol`` of an ack, fail or reset of a tuple or a tuple's id. Raises ValueError for None."""
    if given is None:
        raise coded(
            ValueError,
            "PYSTORM_NOT_A_TUPLE",
            f"{name_of(component)}.{method} takes a tuple or its id; Given: None",
        )
    return send_by_protocol(component, {"command": method, "id": given.id if isinstance(given, Tuple) else given})


cdef Tuple tuple_meant(object given):
    """The tuple, given itself or by its id; None if no tuple of that id is held any more."""
    cdef Tuple tup = <Tuple>given if isinstance(given, Tuple) else tuple_named(given)
    if tup is not None and tup.root is NULL and tup.roots is None and tup.key is not None:
        tup = tuple_named(tup.key) or tup  # a copy stands for what it is a copy of
    return tup


cdef int settle(object component, str method, object given, bint failed) except -1:
    cdef BoltOutputCollector collector
    cdef Tuple tup
    if verdict_by_protocol(component, method, given):
        return 0
    collector = <BoltOutputCollector?>collector_of(component)
    tup = tuple_meant(given)
    if tup is None:
        collector.duplicate_verdicts += 1  # no tuple of that id is held any more
    elif failed:
        collector.fail(tup)
    else:
        collector.ack(tup)
    return 0


cdef inline int send_plain(PyObject *collector, PyObject *values, const anchor_t *anchor) except -1:
    # As `send` does what has no stream and no task ids. Borrowed pointers: the caller keeps all of them alive.
    cdef PyObject *router = <PyObject *>(<OutputCollector>collector).default_router
    cdef Py_ssize_t arity
    if router is not <PyObject *>None and (<StreamRouter>router).straight:  # hot
        arity = (<StreamRouter>router).arity  # hot
        if ps_is_tuple(values) and ps_size(values) == arity:
            send_straight(<StreamRouter>router, <object>values, anchor)
            (<OutputCollector>collector).emits += 1
            return 1
        if ps_is_list(values) and ps_size(values) == arity:
            send_straight(
                <StreamRouter>router, named_values(<object>values, (<StreamRouter>router).source.values_class), anchor
            )
            (<OutputCollector>collector).emits += 1
            return 1
    (<OutputCollector>collector).send(<object>values, None, anchor, None)
    return 1


cdef inline int send_rooted(PyObject *collector, PyObject *values, PyObject *tup_id) except -1:
    # A spout's plain emit with an id, where its stream goes straight to one task: 0 where it does not. Its one tuple is
    # the root's first edge. As `send_plain`, borrowed pointers.
    cdef PyObject *router = <PyObject *>(<OutputCollector>collector).default_router
    cdef object payload
    if router is <PyObject *>None or not (<StreamRouter>router).straight:  # hot
        return 0
    if ps_size(values) != (<StreamRouter>router).arity:  # hot
        return 0
    if ps_is_tuple(values):
        payload = <object>values
    elif ps_is_list(values):
        payload = named_values(<object>values, (<StreamRouter>router).source.values_class)
    else:
        return 0
    root_straight(<SpoutOutputCollector>collector, <StreamRouter>router, payload, tup_id)
    return 1


cdef inline int root_straight(SpoutOutputCollector collector, StreamRouter router, object payload,
                              PyObject *tup_id) except -1:
    cdef uint64_t edge = ps_acker_edge(&collector.acker.acker)
    cdef ps_root *root = collector.open_root(<PyObject *>payload, tup_id, <PyObject *>None, edge, 1)
    cdef Tuple tup = new_tuple(router.source, payload, collector.last_offset)
    tup.root = root
    tup.attempt = root.attempt
    tup.edge = edge
    root.waiting = 1
    router.emitted += 1
    router.transferred += 1
    collector.emits += 1
    collector.rooted += 1
    return transfer(router.pending, router.only, tup)


# The plain emits, `emit(values)` and a partitioned spout's `emit(values, offset)`, from inside the scheduler's call: 1
# where that is what it was, 0 where the general method has to look.
cdef int try_spout_emit(PyObject *component, PyObject *values, PyObject *tup_id) except -1:
    cdef PyObject *collector = <PyObject *>running
    cdef anchor_t anchor
    cdef bint acked = 0
    if collector is <PyObject *>None or <PyObject *>(<OutputCollector>collector).instance is not component:  # hot
        return 0
    if tup_id is NULL:
        if (<SpoutOutputCollector>collector).bounded:  # hot
            return 0
    elif tup_id is not <PyObject *>None or (<SpoutOutputCollector>collector).bounded:  # hot
        if (<SpoutOutputCollector>collector).bounded:
            (<SpoutOutputCollector>collector).check_range(<object>tup_id)
        if (<SpoutOutputCollector>collector).tracks:
            return send_rooted(collector, values, tup_id)
        if not (<SpoutOutputCollector>collector).bounded:
            if (<SpoutOutputCollector>collector).roots.notifies_acks:
                return 0
            acked = 1  # as no acker runs
    anchor = no_anchor((<SpoutOutputCollector>collector).last_offset)
    send_plain(collector, values, &anchor)
    (<SpoutOutputCollector>collector).untracked += acked
    return 1


cdef int try_bolt_emit(PyObject *component, PyObject *values, PyObject *none) except -1:
    cdef PyObject *collector = <PyObject *>running
    cdef PyObject *current
    cdef anchor_t anchor
    if collector is <PyObject *>None or <PyObject *>(<OutputCollector>collector).instance is not component:  # hot
        return 0
    current = <PyObject *>(<BoltOutputCollector>collector).current
    if current is <PyObject *>None:  # hot
        return try_batch_emit(collector, values)
    if (<Tuple>current).verdict != OPEN:  # hot
        return 0
    if not (<BoltOutputCollector>collector).auto_anchor or (<BoltOutputCollector>collector).batching:  # hot
        return 0
    anchor_to_tuple(&anchor, <Tuple>current)
    return send_plain(collector, values, &anchor)


cdef int try_batch_emit(PyObject *collector, PyObject *values) except -1:
    # In `process_many`, once it is known what all of its tuples are anchored to.
    cdef anchor_t anchor
    if (<BoltOutputCollector>collector).batch is None or not (<BoltOutputCollector>collector).batch_anchored:
        return 0
    if not (<BoltOutputCollector>collector).auto_anchor or (<BoltOutputCollector>collector).batching:
        return 0
    if (<BoltOutputCollector>collector).batch_verdicts != (
        (<BoltOutputCollector>collector).acks + (<BoltOutputCollector>collector).fails
    ):
        return 0
    anchor = (<BoltOutputCollector>collector).batch_anchor
    return send_plain(collector, values, &anchor)


ps_own_emit_set(try_spout_emit, try_bolt_emit, SpoutBase, BoltBase)
