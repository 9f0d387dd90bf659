"""What becomes of an exception of a bolt: its tuple or batch fails, and the run with it or not.

    exit_on_exception          the run fails                      unless one of these decides over the exception:
    topology.retry.on          it is reported, the tuple fails
    a FailureKind, raised      the tuple fails as the bolt says

Threading law: as every executor.
"""

from cpython.object cimport PyObject

from cython_core.executors.executor cimport Executor, ps_decref, reraise
from cython_core.routing.output_collector cimport BoltOutputCollector
from cython_core.tuples.tuple cimport OPEN, Tuple

from cython_core.executors.executor import ComponentFailed
from cython_core.routing.failure_kinds import FailureKind


cdef class BoltFailures(Executor):
    """An executor whose component fails tuples."""

    cdef int caught(self, str method) except -1:
        """With an exception of the bolt's set."""
        try:
            reraise()
        except Exception as error:
            self.fail_current(method, error)
        except BaseException as error:
            raise self.interrupted_in(method, error)
        return 0

    cdef bint refuses(self, PyObject *answer) except -1:
        """Whether what process has returned, without an emit, failed the tuple; then it has given the answer back."""
        error = self.collector.lost_by("process", <object>answer)
        if error is None:
            return False
        ps_decref(answer)
        self.fail_current("process", error)
        return True

    cdef object interrupted_in(self, str method, object error):
        """As ``interrupted``, by the tuple or the batch that it works on."""
        cdef Tuple tup = self.collector.current
        broken, self.collector.broken = self.collector.broken, None
        if broken is not None and broken[0] is error:
            method = broken[3]
            tup = next(iter(broken[1]), None)
        return self.interrupted(method, tup, -1 if tup is None else tup.offset, error)

    cdef int named(self, object cause) except -1:
        """What decides over an exception of the bolt: 0: ``exit_on_exception``; BY_TABLE: ``topology.retry.on``;
        BY_BOLT: the bolt itself, which has raised a FailureKind."""
        if isinstance(cause, FailureKind):
            return BY_BOLT
        verdict = None if self.rules is None else self.rules.verdict(cause)
        self.reported.retries = verdict == "retry"
        return 0 if verdict is None else BY_TABLE

    cdef int fail_current(self, str method, object cause) except -1:
        """Handles an exception of the bolt, inside its ``except``: fails the tuple or the batch that it worked on."""
        cdef BoltOutputCollector collector = self.collector
        cdef Tuple tup = collector.current
        cdef int named = 0
        cdef bint exits
        batch, broken = None, collector.broken
        collector.broken = None
        if broken is not None and broken[0] is cause:
            batch, key, method = broken[1:]
        elif self.batch_override and getattr(self.instance, "_current_tups", None):
            batch, key = self.instance._current_tups, getattr(self.instance, "_current_key", None)
            method = "process_batch"
        if batch is not None:
            tup = next(iter([each for each in batch if isinstance(each, Tuple)]), None)
        if tup is not None and tup.source.task >= 0:  # a tick cannot come again
            named = self.named(cause)
        exits = self.exits and named == 0
        self.errors += exits
        if not exits and named != BY_BOLT:
            self.survive(method, tup, -1 if tup is None else tup.offset, cause)
        if batch is not None:
            self.batching._fail_batches(exits, key, batch, cause, self.auto_fail or named == BY_BOLT)
        elif (self.auto_fail or named == BY_BOLT) and tup is not None and tup.verdict == OPEN:
            collector.fail(tup, method, cause)
        if self.batch_override:
            self.forget_tups()
        if exits:
            raise ComponentFailed(
                self.component, self.task, method, tup, -1 if tup is None else tup.offset
            ) from cause
        if collector.failed is not None:
            self.raise_tuple_failed(method, cause)
        collector.current = None
        return 0

    cdef int forget_tups(self) except -1:
        """What an override of process_batches said that it works on, it does no more."""
        if getattr(self.instance, "_current_tups", None):
            self.instance._current_tups = []
        return 0

    cdef int raise_tuple_failed(self, str method, object cause) except -1:
        cdef Tuple failed = <Tuple>self.collector.failed
        raise ComponentFailed(self.component, self.task, method, failed, failed.offset) from cause
