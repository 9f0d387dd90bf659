"""Requests of an async bolt: calls of ``async def process`` that are under way, many at a time.

    process(tup 1)  ──await──┐          each request is a task of the event loop, with a context of its own:
    process(tup 2)  ──await──┤          whatever runs in it, the tasks that it starts included, finds its request
    process(tup 3)  ──await──┘          by a context variable, and with it the tuple that its emits are anchored to

Unordered, what a request emits leaves at once. Ordered, it leaves once all requests before it are over; until then it
is held, and an ack of its tuple with it. A request that fails drops what is held of it.

Threading law: all that runs in requests runs in the thread that turns their loop, as the executor's turn.
"""

from collections import deque
from contextvars import ContextVar

cimport cython
from cpython.contextvars cimport PyContextVar_Reset, PyContextVar_Set, get_value
from cpython.pythread cimport PyThread_get_thread_ident

from cython_core.routing.component_base cimport BoltBase
from cython_core.routing.output_collector cimport BoltOutputCollector, name_of, set_current_collector
from cython_core.timing.timers cimport CANCELLED, EXPIRED, PENDING, DelayedOperation, ps_wheel_cancel
from cython_core.tuples.tuple cimport OPEN, Tuple, gather, take_gathered

from cython_core.arrow.row_error import coded, shown

cdef object REQUEST = ContextVar("pystorm_request")
request_variable = REQUEST  # for code in Python


@cython.final
cdef class RequestLine:
    def __cinit__(self, BoltOutputCollector collector not None, object loop, bint ordered):
        self.collector = collector
        self.loop = loop
        self.ordered = ordered
        self.finished = deque()
        self.expired = []
        self.resumed = []
        self.strays = []


@cython.final
cdef class AsyncRequest(DelayedOperation):
    """One call of ``process``, or of an async ``process_tick``. It expires when its time is over."""

    @property
    def bolt(self):
        """Whose call it is."""
        return self.line.collector.instance

    def blame(self, error):
        """What it has started and not awaited is an error of its call; behind its end, one of the bolt's next turn."""
        if self.done:
            self.line.strays.append((self, self.method, error))
        elif self.unawaited is None:
            self.unawaited = error

    def __call__(self, task):
        """The task's: its coroutine has ended."""
        if self.abandoned:
            if not task.cancelled():
                task.exception()  # or asyncio would log that it was never retrieved
            return
        self.line.finished.append(self)
        self.line.loop.wake()

    cpdef object on_expiration(self):
        self.line.expired.append(self)

    cdef object now_or_later(self, str method, tuple arguments):
        cdef bint emits = method != "ack"
        self.has_emitted = self.has_emitted or emits
        if self.line.thread != <unsigned long>PyThread_get_thread_ident():
            raise coded(
                RuntimeError,
                "PYSTORM_EMIT_OUTSIDE_OF_RUN",
                f"{name_of(self.line.collector.instance)}.{method} is called by a thread that the request has "
                f"started: return the result to the coroutine, and {method} there; Given: {shown(self.tup)}"
            )
        if self.outcome == EXPIRED or self.outcome == CANCELLED:
            raise coded(
                ValueError,
                "PYSTORM_ANCHOR_CLOSED",
                f"{name_of(self.line.collector.instance)}.{method}: the request was given up, as its time was "
                f"over, its tree has failed or its task ends; Given: {shown(self.tup)}"
            )
        if self.done and emits:
            self.refuse_stray(arguments)
        if self.leads:
            return self.do(method, arguments)
        if method == "emit" and arguments[4]:
            raise coded(
                ValueError,
                "PYSTORM_TASK_IDS_UNKNOWN",
                f"{type(self.line.collector.instance).__name__}.emit: need_task_ids cannot be answered while earlier "
                f"requests are under way; leave it out, or set topology.async.ordered=false; "
                f"Given: {shown(arguments[0])}"
            )
        if self.held is None:
            self.held = []
        self.held.append((method, arguments))

    cdef int refuse_stray(self, tuple arguments) except -1:
        """An emit of what its process() has started and not awaited, to be anchored to a tuple that has its verdict.

        Order: written down, too, as the exception of the task may never be seen.
        """
        if self.tup.verdict == OPEN or arguments[2] is not None or not self.line.collector.auto_anchor:
            return 0
        error = coded(
            ValueError,
            "PYSTORM_ANCHOR_CLOSED",
            f"{name_of(self.line.collector.instance)}.emit: its {self.method}() has returned: await what it starts, or "
            f"emit with anchors=[]; Given: {shown(arguments[0])}"
        )
        self.line.strays.append((self, "emit", error))
        raise error

    cdef object do(self, str method, tuple arguments):
        cdef BoltOutputCollector collector = self.line.collector
        cdef Tuple outer = collector.current
        collector.current = self.tup
        set_current_collector(collector)
        try:
            if method == "emit":
                return BoltBase.emit(collector.instance, *arguments)
            if method == "emit_batch":
                return BoltBase.emit_batch(collector.instance, *arguments)
            BoltBase.ack(collector.instance, *arguments)
        finally:
            collector.current = outer
            self.line.loop.wake()

    cdef int lead(self) except -1:
        """All before it are over: what it held leaves, and what it emits from now on at once."""
        self.leads = True
        held, self.held = self.held, None
        for method, arguments in held or ():
            self.do(method, arguments)
        return 0


cdef object begin(AsyncRequest request, object create_task, object coroutine):
    """The task that runs the coroutine as that request."""
    token = PyContextVar_Set(REQUEST, request)
    try:
        request.task = create_task(coroutine)
    finally:
        PyContextVar_Reset(REQUEST, token)
    request.task.add_done_callback(request)


cdef AsyncRequest request_of(object bolt):
    """The request of this bolt in whose context the caller runs, or None."""
    cdef AsyncRequest request = <AsyncRequest>get_value(REQUEST)
    return request if request is not None and request.line.collector.instance is bolt else None


def call_both(first, second, argument):
    """Has no frame of Python's, so that a warning of the second one names the line of the caller."""
    first(argument)
    second(argument)


def pause_request(bolt):
    """In a call of ``process``: it begins to wait for the engine. Neither its time nor that of its tuple's tree runs,
    as for a tuple in a queue. Returns what to give to ``resume_request``; None if the caller is in no such call."""
    cdef AsyncRequest request = request_of(bolt)
    return None if request is None else pause(request)


def pause(AsyncRequest request not None):
    """As ``pause_request``, of this call; None if it was given up. Parts of it may wait at the same time."""
    if request.outcome != PENDING:
        return None
    request.paused += 1
    if request.paused > 1:
        return request
    if request.ward is not None:
        ps_wheel_cancel(&request.ward.wheel, &request.timer)
    gather(request.tup)
    return request


def resume_request(AsyncRequest request not None):
    """One part waits no longer; once none does, its time begins anew."""
    request.paused -= 1
    if request.paused > 0:
        return
    take_gathered(request.tup)
    if request.outcome == PENDING:
        request.line.resumed.append(request)
        request.line.loop.wake()


def request_has_expired(bolt):
    """Whether the call of ``process`` in whose context the caller runs has taken longer than it may."""
    cdef AsyncRequest request = request_of(bolt)
    return request is not None and has_expired(request)


def has_expired(AsyncRequest request not None):
    """Whether this call has taken longer than it may."""
    return request.outcome == EXPIRED


@cython.auto_pickle(True)
cdef class AsyncBase(BoltBase):
    """What async bolts inherit. Has no fields."""

    def emit(self, tup, stream=None, anchors=None, direct_task=None, need_task_ids=False):
        """As ``Bolt.emit``. Inside ``process`` anchored to the tuple of that call, whatever else is under way.

        Raises:
            ValueError: the call was given up, ``process`` has returned, or ``need_task_ids`` with ordered results.
            RuntimeError: called by another thread than the coroutine's.
        """
        cdef AsyncRequest request = request_of(self)
        if request is None:
            return BoltBase.emit(self, tup, stream, anchors, direct_task, need_task_ids)
        if isinstance(tup, list) and not request.leads:
            tup = tuple(tup)  # which the caller may change before it leaves
        return request.now_or_later("emit", (tup, stream, anchors, direct_task, need_task_ids))

    def emit_batch(self, batch, stream=None, anchors=None, direct_task=None):
        """As ``Bolt.emit_batch``. Inside ``process`` anchored to the tuple of that call, whatever else is under way.

        Raises:
            ValueError: the call was given up, or ``process`` has returned.
            RuntimeError: called by another thread than the coroutine's.
        """
        cdef AsyncRequest request = request_of(self)
        if request is None:
            BoltBase.emit_batch(self, batch, stream, anchors, direct_task)
        else:
            request.now_or_later("emit_batch", (batch, stream, anchors, direct_task))

    def ack(self, tup):
        """As ``Bolt.ack``. With ordered results behind what the request has emitted so far.

        Args:
            tup (Tuple | str): the tuple, or its id.
        """
        cdef AsyncRequest request = request_of(self)
        if request is None or request.held is None:
            BoltBase.ack(self, tup)
        else:
            request.now_or_later("ack", (tup,))

    def fail(self, tup, *, error=None, retry=True):
        """As ``Bolt.fail``. With ordered results, what the request still holds of its emits is dropped.

        Args:
            tup (Tuple | str): the tuple, or its id.
            error (Exception): as of ``Bolt.fail``. Defaults to None.
            retry (bool): as of ``Bolt.fail``. Defaults to True.
        """
        cdef AsyncRequest request = request_of(self)
        BoltBase.fail(self, tup, error=error, retry=retry)
        if request is not None and (tup is request.tup or tup == request.tup.id):
            request.held = None
