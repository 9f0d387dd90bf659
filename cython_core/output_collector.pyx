"""``emit``, ``ack`` and ``fail`` of spouts and bolts, compiled.

    class MyBolt(Bolt)  ──inherits──►  BoltBase.emit (one call into C)  ──►  BoltOutputCollector  ──►  StreamRouter

The bases that user classes inherit have no C fields: CPython 3.11 keeps the attributes of an instance inline (and its
attribute opcodes specialised) only where no base adds fields of its own, and a component that reads three attributes
per tuple would pay 40 ns for them. So the state is in a collector beside the instance, and the methods find it through
``running``, the collector of the component that the scheduler has called; anything else takes the slower way by the
instance's ``_pystorm_collector`` attribute.

Threading law: a collector belongs to the thread of its executor.
"""

import weakref

cimport cython
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.object cimport PyObject, PyObject_GenericSetAttr
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_SIZE

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1
    bint ps_is_tuple "PyTuple_Check"(PyObject *)
    bint ps_is_list "PyList_CheckExact"(PyObject *)
    Py_ssize_t ps_size "Py_SIZE"(PyObject *)


from cython_core.stream_router cimport StreamRouter, send_straight
from cython_core.tuple cimport ACKED, FAILED, OPEN, Tuple, named_values, tuple_named
from cython_core.tuple_tree cimport TupleTree, ack_edge, add_trees, fail_edge, united


cdef extern from "own_emit.h":
    ctypedef int (*ps_try_emit)(PyObject *, PyObject *, PyObject *) except -1
    int ps_own_emit_set(ps_try_emit spout, ps_try_emit bolt, object spout_base, object bolt_base) except -1
    int ps_own_emit(object cls, bint is_bolt) except -1
    int ps_own_emit_back(object cls, bint is_bolt) except -1


cdef OutputCollector running = None
cdef str ATTRIBUTE = "_pystorm_collector"
cdef object NOT_YET = object()
cdef str HEARER = "_pystorm_told"


cdef int enter(OutputCollector collector) except -1:
    """Makes this the collector that its component's methods find at once."""
    global running
    running = collector
    return 0


cdef class OutputCollector:
    """``OutputCollector(instance, routers)``: wires a component; ``routers`` maps stream names to StreamRouters."""

    def __init__(self, instance, dict routers not None):
        self.instance = instance
        self.routers = routers
        self.default_router = routers.get("default")
        PyObject_GenericSetAttr(instance, ATTRIBUTE, self)
        self.given_class = give_own_emit(type(instance), isinstance(self, BoltOutputCollector))

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
            enter(None)

    cdef StreamRouter router_of(self, object stream):
        cdef StreamRouter router = self.routers.get("default" if stream is None else stream)
        if router is None:
            raise ValueError(
                f"Unknown stream ID: {type(self.instance).__name__} declares the streams "
                f"{', '.join(repr(name) for name in self.routers) or 'none'} in `outputs`; declare the fields, such as "
                f"{example_of(stream)}. "
                f"Given: {'default' if stream is None else stream!r}"
            )
        return router

    cdef int send(self, object values, object stream, long long offset, object trees, list task_ids) except -1:
        cdef StreamRouter router = self.default_router
        if stream is not None or router is None:
            router = self.router_of(stream)
        if PyTuple_Check(values) and PyTuple_GET_SIZE(values) == router.arity:
            router.route(values, offset, trees, task_ids)
        else:
            router.route(fitting(router, values), offset, trees, task_ids)
        self.emits += 1
        return 0

    cdef object send_with(self, object values, object stream, long long offset, object trees, object direct_task,
                          bint need_task_ids):
        """An emit to a direct task, or one whose sender wants to know the tasks."""
        cdef list task_ids = []
        cdef StreamRouter router
        if direct_task is None:
            self.send(values, stream, offset, trees, task_ids)
        else:
            router = self.router_of(stream)
            if router.route_direct(fitting(router, values), offset, direct_task, trees) > 0:
                task_ids.append(direct_task)
            self.emits += 1
        return task_ids if need_task_ids else None


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
        raise TypeError(f"All Tuples must be either lists or tuples, received {type(values)!r} instead.")
    if n != router.arity:
        raise ValueError(
            f"Tuple created with wrong number of fields: stream {router.source.stream!r} of "
            f"{router.source.component!r} declares {list(router.source.fields)}; Given: {values!r:.200}"
        )
    return values


@cython.final
cdef class SpoutOutputCollector(OutputCollector):
    """A spout task's way out, the offset range that its tuple ids are checked against, and its settled trees."""

    def __cinit__(self):
        self.settlements = []
        self.deferred = []

    cdef int check_range(self, object tup_id) except -1:
        cdef long long offset
        cdef int beyond = 0
        if type(tup_id) is not int:
            raise ValueError(
                f"{type(self.instance).__name__} is a PartitionedSpout: emit(values, tup_id=offset) needs the tuple's "
                f"offset, an int in [{self.start}, {self.end}); Given: {tup_id!r}"
            )
        offset = PyLong_AsLongLongAndOverflow(tup_id, &beyond)
        if beyond != 0 or not self.start <= offset < self.end:
            raise ValueError(
                f"{type(self.instance).__name__} emitted an offset outside of its range [{self.start}, {self.end}): "
                f"next_tuple() returns False once the range is exhausted; Given: {tup_id!r}"
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

    cdef object trees_of_current(self, long long *offset):
        """The trees that an emit without ``anchors`` belongs to; ``offset``: that of its first anchor that has one."""
        cdef object trees
        if self.batch is not None:
            trees = self.trees_of_batch(offset)
        elif self.current is not None and not (self.batching and self.current.source.task < 0):
            offset[0] = self.current.offset
            if self.auto_anchor:
                check_open(self, self.current)
            trees = self.current.trees
        elif self.batching:
            # An override of process_batches says here what it works on, as pystorm's own does.
            trees = self.trees_of(getattr(self.instance, "_current_tups", None) or (), offset)
        else:
            trees = None
        return trees if self.auto_anchor else None

    cdef object trees_of_batch(self, long long *offset):
        """Once per batch: only a verdict can change what an emit may be anchored to."""
        cdef unsigned long long verdicts = self.acks + self.fails
        if self.batch_trees is NOT_YET or (self.auto_anchor and self.batch_verdicts != verdicts):
            self.batch_offset = -1
            self.batch_trees = self.trees_of(self.batch, &self.batch_offset, self.auto_anchor)
            self.batch_verdicts = verdicts
        offset[0] = self.batch_offset
        return self.batch_trees

    cdef object trees_of(self, object anchors, long long *offset, bint must_be_open=True):
        cdef Tuple tup
        cdef dict trees = {}
        if isinstance(anchors, (Tuple, str, bytes)) or not hasattr(anchors, "__iter__"):
            raise TypeError(
                f"{type(self.instance).__name__}.emit: anchors is a list of Tuples or of ids; Given: {anchors!r:.200}"
            )
        for anchor in anchors:
            tup = <Tuple>anchor if isinstance(anchor, Tuple) else tuple_named(anchor)
            if tup is None:
                raise ValueError(
                    f"{type(self.instance).__name__}.emit: an anchor is a Tuple that the bolt still holds, or its id; "
                    f"Given: {anchor!r:.200}"
                )
            if must_be_open:
                check_open(self, tup)
            add_trees(trees, tup.trees)
            if offset[0] == -1:
                offset[0] = tup.offset
        return united(trees)

    cdef int ack(self, Tuple tup) except -1:
        if tup.verdict != OPEN:
            self.second_verdicts += 1
            return 0
        tup.verdict = ACKED
        self.acks += tup.source.task >= 0  # ticks do not count
        if tup.trees is not None:
            ack_edge(tup.trees)
        return 0

    cdef int fail(self, Tuple tup) except -1:
        if tup.verdict != OPEN:
            self.second_verdicts += 1
            return 0
        tup.verdict = FAILED
        self.fails += tup.source.task >= 0
        if tup.trees is not None:
            fail_edge(tup.trees)
        if tup.offset != -1:
            if self.failed is None:
                self.failed = tup
        elif tup.trees is None and tup.source.task >= 0:
            self.unheard_fails += 1
        return 0


cdef int check_open(BoltOutputCollector collector, Tuple anchor) except -1:
    if anchor.verdict != OPEN:
        raise ValueError(
            f"{type(collector.instance).__name__}.emit: Anchored onto {anchor.id} after ack/fail: emit first, then "
            f"{'ack' if anchor.verdict == ACKED else 'fail'}, or emit with anchors=[]; Given: {anchor!r:.200}"
        )
    return 0


cdef OutputCollector collector_or_none(object component):
    """The slow way, for calls that do not come from inside the scheduler's call."""
    if running is not None and running.instance is component:
        return running
    collector = getattr(component, ATTRIBUTE, None)
    return collector if isinstance(collector, OutputCollector) else None


cdef OutputCollector collector_of(object component):
    """As ``collector_or_none``. Raises RuntimeError outside of a topology."""
    cdef OutputCollector collector = collector_or_none(component)
    if collector is None:
        raise RuntimeError(
            f"{type(component).__name__}.emit, ack or fail while the component is not in a running topology: emit from "
            f"initialize() on, not from the constructor and not after cleanup(); in a unit test run it in a topology"
        )
    return collector


cdef bint heard(object component, dict message) except -1:
    """Whether the component is in no topology, but in a unit test that listens to it, which has got the message."""
    if collector_or_none(component) is not None:
        return False
    hearer = getattr(component, HEARER, None)
    return hearer is not None and hearer(message)


cdef object heard_emit(object component, object values, dict more, object stream, object direct_task,
                       bint need_task_ids):
    """What pystorm's ``emit`` would send. Raises as ``collector_of`` where nobody listens."""
    if not isinstance(values, (list, tuple)):
        raise TypeError(f"All Tuples must be either lists or tuples, received {type(values)!r} instead.")
    cdef dict message = {"command": "emit", "tuple": values, **more}
    if stream is not None:
        message["stream"] = stream
    if direct_task is not None:
        message["task"] = direct_task
    if not need_task_ids:
        message["need_task_ids"] = False
    if not heard(component, message):
        collector_of(component)
    if not need_task_ids:
        return None
    return [direct_task] if direct_task is not None else component.read_task_ids()


cdef class SpoutBase:
    """What every spout inherits. Has no fields."""

    def emit(self, tup, tup_id=None, stream=None, direct_task=None, need_task_ids=False):
        """Emits one tuple. Non-blocking.

        ``tup``: list or tuple of the stream's arity. ``tup_id``: for a partitioned spout the tuple's offset, an int
        inside the open range; for others the message id that ``ack`` or ``fail`` will get, None for neither.
        ``direct_task``: on a direct stream, the task that gets it. Returns None, or the task ids that got it where
        ``need_task_ids`` is true.

        Raises TypeError for other values, ValueError for a wrong arity, an undeclared stream, a direct task on a
        stream that is not direct or none on one that is, an offset outside the range.
        """
        cdef OutputCollector found = collector_or_none(self)
        cdef SpoutOutputCollector collector
        cdef TupleTree tree = None
        cdef object task_ids = None
        if found is None:
            more = {} if tup_id is None else {"id": tup_id}
            return heard_emit(self, tup, more, stream, direct_task, need_task_ids)
        collector = <SpoutOutputCollector?>found
        if collector.bounded:
            collector.check_range(tup_id)
        elif tup_id is not None:
            tree = TupleTree(tup_id, collector.settlements)
            tree.generation = collector.generation
        try:
            if direct_task is None and not need_task_ids:
                collector.send(tup, stream, collector.last_offset, tree, None)
            else:
                task_ids = collector.send_with(tup, stream, collector.last_offset, tree, direct_task, need_task_ids)
        except BaseException:
            if tree is not None:
                tree.settled = 1  # an emit that raises is told to nobody, though some of its tuples may be on their way
            raise
        if tree is not None:
            collector.rooted += 1
            ack_edge(tree)
        return task_ids

    def ack(self, tup_id):
        """The tuple tree of ``tup_id`` is done. Does nothing unless overridden."""

    def fail(self, tup_id):
        """The tuple tree of ``tup_id`` failed. Does nothing unless overridden."""


cdef class BoltBase:
    """What every bolt inherits. Has no fields."""

    def emit(self, tup, stream=None, anchors=None, direct_task=None, need_task_ids=False):
        """Emits one tuple. Non-blocking.

        ``tup``: list or tuple of the stream's arity. ``anchors``: None anchors to the tuple in ``process`` or to all of
        ``process_batch`` (``auto_anchor``), a list of tuples or ids to these, an empty list to none. ``direct_task``:
        on a direct stream, the task that gets it. Returns None, or the task ids that got it where ``need_task_ids`` is
        true.

        Raises TypeError for other values, ValueError for a wrong arity, an undeclared stream, a direct task on a
        stream that is not direct or none on one that is, an anchor that has its verdict already.
        """
        cdef OutputCollector found = collector_or_none(self)
        cdef BoltOutputCollector collector
        cdef long long offset = -1
        cdef object trees
        if found is None:
            if anchors is None:
                anchors = getattr(self, "_current_tups", ()) if getattr(self, "auto_anchor", True) else ()
            more = {"anchors": [anchor.id if isinstance(anchor, Tuple) else anchor for anchor in anchors]}
            return heard_emit(self, tup, more, stream, direct_task, need_task_ids)
        collector = <BoltOutputCollector?>found
        if anchors is None:
            trees = collector.trees_of_current(&offset)
        else:
            trees = collector.trees_of(anchors, &offset)
        if direct_task is None and not need_task_ids:
            collector.send(tup, stream, offset, trees, None)
            return None
        return collector.send_with(tup, stream, offset, trees, direct_task, need_task_ids)

    def ack(self, tup):
        """Says that the tuple, given itself or by its id, is done. The first verdict counts, a second has no effect.

        Raises ValueError for None.
        """
        settle(self, "ack", tup, False)

    def fail(self, tup):
        """Fails the tuple, given itself or by its id: its spout's ``fail`` is called for each tree that it is part of.

        Where it stems from a partitioned spout, the task fails as soon as the component returns. The first verdict
        counts, a second has no effect. Raises ValueError for None.
        """
        settle(self, "fail", tup, True)

    def process_tick(self, tup):
        """Called with a tick tuple, values ``(seconds,)``: every ``topology.tick.tuple.freq.secs``, and once when the
        micro-batch ends. Does nothing unless overridden. Ticks never reach ``process``."""


cdef int settle(object component, str method, object given, bint failed) except -1:
    cdef BoltOutputCollector collector
    cdef Tuple tup
    if given is None:
        raise ValueError(f"{type(component).__name__}.{method} takes a tuple or its id; Given: None")
    if heard(component, {"command": method, "id": given.id if isinstance(given, Tuple) else given}):
        return 0
    collector = <BoltOutputCollector?>collector_of(component)
    tup = <Tuple>given if isinstance(given, Tuple) else tuple_named(given)
    if tup is not None and tup.trees is None and tup.key is not None:
        tup = tuple_named(tup.key) or tup  # a copy stands for what it is a copy of
    if tup is None:
        collector.second_verdicts += 1  # nobody holds a tuple of that id any more
    elif failed:
        collector.fail(tup)
    else:
        collector.ack(tup)
    return 0


cdef inline int send_plain(PyObject *collector, PyObject *values, long long offset, PyObject *trees) except -1:
    # As `send` does what has no stream and no task ids. Borrowed pointers: the caller keeps all of them alive.
    cdef PyObject *router = <PyObject *>(<OutputCollector>collector).default_router
    cdef Py_ssize_t arity
    if router is not <PyObject *>None and (<StreamRouter>router).straight:  # hot
        arity = (<StreamRouter>router).arity  # hot
        if ps_is_tuple(values) and ps_size(values) == arity:
            send_straight(<StreamRouter>router, <object>values, offset, <object>trees)
            (<OutputCollector>collector).emits += 1
            return 1
        if ps_is_list(values) and ps_size(values) == arity:
            send_straight(
                <StreamRouter>router,
                named_values(<object>values, (<StreamRouter>router).source.values_class),
                offset,
                <object>trees,
            )
            (<OutputCollector>collector).emits += 1
            return 1
    (<OutputCollector>collector).send(<object>values, None, offset, <object>trees, None)
    return 1


# The plain emits, `emit(values)` and a partitioned spout's `emit(values, offset)`, from inside the scheduler's call: 1
# where that is what it was, 0 where the general method has to look.
cdef int try_spout_emit(PyObject *component, PyObject *values, PyObject *tup_id) except -1:
    cdef PyObject *collector = <PyObject *>running
    if collector is <PyObject *>None or <PyObject *>(<OutputCollector>collector).instance is not component:  # hot
        return 0
    if tup_id is NULL:
        if (<SpoutOutputCollector>collector).bounded:  # hot
            return 0
    elif (<SpoutOutputCollector>collector).bounded:
        (<SpoutOutputCollector>collector).check_range(<object>tup_id)
    elif tup_id is not <PyObject *>None:
        return 0
    return send_plain(collector, values, (<SpoutOutputCollector>collector).last_offset, <PyObject *>None)


cdef int try_bolt_emit(PyObject *component, PyObject *values, PyObject *none) except -1:
    cdef PyObject *collector = <PyObject *>running
    cdef PyObject *current
    if collector is <PyObject *>None or <PyObject *>(<OutputCollector>collector).instance is not component:  # hot
        return 0
    current = <PyObject *>(<BoltOutputCollector>collector).current
    if current is <PyObject *>None or (<Tuple>current).verdict != OPEN:  # hot
        return 0
    if not (<BoltOutputCollector>collector).auto_anchor or (<BoltOutputCollector>collector).batching:  # hot
        return 0
    return send_plain(collector, values, (<Tuple>current).offset, <PyObject *>(<Tuple>current).trees)


ps_own_emit_set(try_spout_emit, try_bolt_emit, SpoutBase, BoltBase)
