"""The way out of a component: what ``emit`` sends, to which stream.

    class MyBolt(Bolt)  ──inherits──►  BoltBase.emit (one call into C)  ──►  BoltOutputCollector  ──►  StreamRouter

    plain_emit.pxi                    ``emit(values)`` of the component that runs: the shortest way
    spout_base.pxi, bolt_base.pxi     the general ``emit`` and all else that user classes inherit
    spout_output_collector.pxi        a spout task's way out: the roots of its trees
    bolt_output_collector.pxi         a bolt task's way out: anchors and verdicts
    own_emit.pxi                      the ``emit`` that the component's class gets

The bases that user classes inherit have no C fields: CPython 3.11 keeps the attributes of an instance inline (and its
attribute opcodes specialised) only where no base adds fields of its own, and a component that reads three attributes
per tuple would pay 40 ns for them. So the state is in a collector beside the instance, and the methods find it through
``running``, the collector of the component that the scheduler has called; anything else takes the slower way by the
instance's ``_pystorm_collector`` attribute.

Threading law: a collector belongs to the thread of its executor.
"""

import logging
from types import CoroutineType

from cpython.list cimport PyList_CheckExact, PyList_GET_SIZE
from cpython.object cimport PyObject_GenericSetAttr
from cpython.tuple cimport PyTuple_Check, PyTuple_GET_SIZE

from cython_core.acking.acker cimport anchor_t
from cython_core.routing.batch_slice cimport BatchSlice, slice_of
from cython_core.routing.stream_router cimport StreamRouter

import pyarrow as pa

from cython_core.arrow.frame_batches import batches_of, is_frame
from cython_core.arrow.row_error import coded, shown

include "own_emit.pxi"
include "bolt_output_collector.pxi"
include "spout_output_collector.pxi"
include "plain_emit.pxi"

logger = logging.getLogger("pystorm.worker")

cdef OutputCollector running = None
cdef str ATTRIBUTE = "_pystorm_collector"
cdef str LATE = "_pystorm_late_emit_reported"
cdef str PROTOCOL = "_pystorm_sends"
cdef str PLAIN = "_pystorm_plain"  # of an `emit` in Python that does what the engine's does: itself
cdef tuple ROWS = (list, tuple, dict, set)  # and iterators: what has the look of rows where a call returns it


cdef int set_current_collector(OutputCollector collector) except -1:
    """Makes this the collector that its component's methods find at once."""
    global running
    running = collector
    if collector is not None:
        collector.thread = ps_this_thread()
        collector.in_call = True
        collector.calls += 1
    return 0


cdef OutputCollector running_for(object component):
    """The collector of the component if that is what runs now, in this thread, else None."""
    return running if running is not None and running.instance is component and running.is_own() else None


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
        self.thread = ps_this_thread()  # until its executor has another one
        for router in routers.values():
            self.acker = (<StreamRouter>router).source.acker
            self.pending = (<StreamRouter>router).pending
        PyObject_GenericSetAttr(instance, ATTRIBUTE, self)
        self.given_class = give_own_emit(type(instance), self.is_bolt)
        self.note_emit()

    def __reduce__(self):
        """A component's state may be pickled: its way out stays where it is."""
        return type(None), ()

    def detach(self):
        """What the component emits from now on is refused, also what waits for room now."""
        self.detached = True
        if self.given_class is not None:
            take_own_emit(self.given_class, self.is_bolt)
            self.given_class = None
        if getattr(self.instance, ATTRIBUTE, None) is self:
            PyObject_GenericSetAttr(self.instance, ATTRIBUTE, None)
        if running is self:
            set_current_collector(None)

    cdef bint is_own(self) noexcept:
        """Whether the engine's call of the component, in its thread, may be what emits. Else see own_thread.pyx."""
        return self.thread == ps_this_thread() and not self.between_runs

    cdef int note_emit(self) except -1:
        """Notes whether the component has another emit than the engine's, which is to see every row."""
        bound = getattr(self.instance, "emit", None)
        plain = getattr(bound, PLAIN, bound) is getattr(bound, "__func__", None)
        self.emits_itself = plain or is_own_emit(bound, self.is_bolt)
        return 0

    cdef StreamRouter router_of(self, object stream):
        cdef StreamRouter router = self.default_router if stream is None else self.routers.get(stream)
        if router is None:
            raise coded(
                ValueError,
                "PYSTORM_UNKNOWN_STREAM",
                f"Unknown stream ID: {type(self.instance).__name__} declares "
                f"{'the streams ' + ', '.join(map(repr, self.routers)) if self.routers else 'no stream'} in `outputs`; "
                f"declare the fields, such as {example_of(stream)}. "
                f"Given: {shown('default' if stream is None else stream)}"
            )
        return router

    cdef object lost_by(self, str method, object answer):
        """A call that has emitted nothing returned this: the exception to raise if it is a coroutine, or if it has the
        look of rows and is to be refused; else None, and ``returned`` says it."""
        cdef bint never_runs = isinstance(answer, CoroutineType)
        if never_runs:
            answer.close()  # or Python would warn of it, too
            how = "await it in an AsyncBolt's process()"
        elif not (self.routers and (isinstance(answer, ROWS) or hasattr(type(answer), "__next__") or is_frame(answer))):
            return None
        elif isinstance(answer, ROWS) and not answer:
            return None  # no rows are lost
        else:
            how = "rows leave by emit alone, "
            how += "self.emit_batch(...)" if is_frame(answer) else "self.emit([...]) for each of them"
        text = f"{method}() returned a {type(answer).__name__} and emitted nothing: {how}. Given: {shown(answer)}"
        if never_runs or self.refuses_returns:
            error = coded(TypeError, "PYSTORM_ROWS_RETURNED", text)
            # Nothing was raised in the component, so no traceback leads to it: the method says where it is.
            error.method_code = getattr(getattr(type(self.instance), method, None), "__code__", None)
            return error
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
        if need_task_ids and self.sends_away:
            raise coded(
                ValueError,
                "PYSTORM_INVALID_ARGUMENT",
                f"{name_of(self.instance)}.emit: a bolt with processes= does not know the tasks that get its tuples, "
                f"which its parent chooses: leave need_task_ids out, or processes=. Given: need_task_ids=True"
            )
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


cdef list slices_given(object component, object batch):
    """What ``emit_batch`` was given, a record batch or a frame: its rows, in one slice unless they fit into none."""
    if isinstance(batch, pa.RecordBatch):
        return [slice_of(batch)]
    try:
        return [slice_of(each) for each in batches_of(batch)]
    except TypeError as error:
        raise coded(
            TypeError,
            "PYSTORM_EMIT_NOT_A_LIST",
            f"{name_of(component)}.emit_batch takes rows in columns: a pyarrow.RecordBatch or Table, a data frame of "
            f"Polars, pandas or DuckDB, or what else has __arrow_c_stream__ ({error}). Given: {shown(batch)}"
        ) from None


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
