"""``emit``, ``ack`` and ``fail`` of spouts and bolts, compiled.

    class MyBolt(Bolt)  ──inherits──►  BoltBase.emit (one call into C)  ──►  BoltOutputCollector  ──►  StreamRouter

The bases that user classes inherit have no C fields: CPython 3.11 keeps the attributes of an instance inline (and its
attribute opcodes specialised) only where no base adds fields of its own, and a component that reads three attributes
per tuple would pay 40 ns for them. So the state is in a collector beside the instance, and the methods find it through
``running``, the collector of the component that the scheduler has called; anything else takes the slower way by the
instance's ``_pystorm_collector`` attribute.

Threading law: a collector belongs to the thread of its executor.
"""

cimport cython
from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.object cimport PyObject_GenericSetAttr
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_SIZE

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1


from cython_core.stream_router cimport StreamRouter
from cython_core.tuple cimport Tuple


cdef OutputCollector running = None
cdef str ATTRIBUTE = "_pystorm_collector"


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

    def detach(self):
        """What the component emits from now on is refused."""
        if getattr(self.instance, ATTRIBUTE, None) is self:
            PyObject_GenericSetAttr(self.instance, ATTRIBUTE, None)
        if running is self:
            enter(None)

    cdef StreamRouter router_of(self, object stream):
        cdef StreamRouter router = self.routers.get(stream)
        if router is None:
            raise ValueError(
                f"Unknown stream ID: {type(self.instance).__name__} declares the streams "
                f"{', '.join(repr(name) for name in self.routers) or 'none'} in `outputs`; Given: {stream!r}"
            )
        return router

    cdef int send(self, object values, object stream, long long offset, list task_ids) except -1:
        cdef StreamRouter router = self.default_router
        cdef Py_ssize_t n
        if stream is not None or router is None:
            router = self.router_of("default" if stream is None else stream)
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
        router.route(values, offset, task_ids)
        self.emits += 1
        return 0


@cython.final
cdef class SpoutOutputCollector(OutputCollector):
    """A spout task's way out, and the offset range that its tuple ids are checked against."""

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
        return 0


@cython.final
cdef class BoltOutputCollector(OutputCollector):
    """A bolt task's way out, and the tuple that it is working on."""


cdef OutputCollector collector_of(object component):
    """The slow way, for calls that do not come from inside the scheduler's call."""
    collector = getattr(component, ATTRIBUTE, None)
    if not isinstance(collector, OutputCollector):
        raise RuntimeError(
            f"{type(component).__name__}.emit, ack or fail while the component is not in a running topology: emit from "
            f"initialize() on, not from the constructor and not after cleanup(); in a unit test run it in a topology"
        )
    return collector


cdef class SpoutBase:
    """What every spout inherits. Has no fields."""

    def emit(self, tup, tup_id=None, stream=None, direct_task=None, need_task_ids=False):
        """Emits one tuple. Non-blocking.

        ``tup``: list or tuple of the stream's arity. ``tup_id``: for a partitioned spout the tuple's offset, an int
        inside the open range. Returns None, or the task ids that got it where ``need_task_ids`` is true.

        Raises TypeError for other values, ValueError for a wrong arity, an undeclared stream, a direct task on a
        stream that is not direct, an offset outside the range.
        """
        cdef SpoutOutputCollector collector
        cdef list task_ids
        if running is not None and running.instance is self:
            collector = <SpoutOutputCollector>running
        else:
            collector = <SpoutOutputCollector?>collector_of(self)
        if collector.bounded:
            collector.check_range(tup_id)
        if direct_task is None and need_task_ids is False:
            collector.send(tup, stream, collector.last_offset, None)
            return None
        reject_direct(self, direct_task)
        task_ids = []
        collector.send(tup, stream, collector.last_offset, task_ids)
        return task_ids if need_task_ids else None


cdef class BoltBase:
    """What every bolt inherits. Has no fields."""

    def emit(self, tup, stream=None, anchors=None, direct_task=None, need_task_ids=False):
        """Emits one tuple. Non-blocking.

        ``tup``: list or tuple of the stream's arity. ``anchors``: None anchors to the tuple in ``process``, a list of
        tuples to these, an empty list to none. Returns None, or the task ids that got it where ``need_task_ids`` is
        true.

        Raises TypeError for other values, ValueError for a wrong arity, an undeclared stream or a direct task on a
        stream that is not direct.
        """
        cdef BoltOutputCollector collector
        cdef Tuple anchor
        cdef long long offset = -1
        cdef list task_ids
        if running is not None and running.instance is self:
            collector = <BoltOutputCollector>running
        else:
            collector = <BoltOutputCollector?>collector_of(self)
        anchor = collector.current
        if anchors is not None:
            anchor = anchors[0] if anchors and isinstance(anchors[0], Tuple) else None
        if anchor is not None:
            offset = anchor.offset
        if direct_task is None and need_task_ids is False:
            collector.send(tup, stream, offset, None)
            return None
        reject_direct(self, direct_task)
        task_ids = []
        collector.send(tup, stream, offset, task_ids)
        return task_ids if need_task_ids else None

    def ack(self, tup):
        """Counts the tuple as done."""
        (<BoltOutputCollector?>collector_of(self)).acks += 1

    def fail(self, tup):
        """Fails the tuple, given itself or by its id: the task fails as soon as the component returns.

        Raises ValueError for None.
        """
        if tup is None:
            raise ValueError(f"{type(self).__name__}.fail takes a tuple or its id; Given: None")
        (<BoltOutputCollector?>collector_of(self)).failed = tup


cdef int reject_direct(object component, object direct_task) except -1:
    if direct_task is not None:
        raise ValueError(
            f"{type(component).__name__}: a direct task can only be given on a stream declared with direct=True; "
            f"Given: {direct_task!r}"
        )
    return 0
