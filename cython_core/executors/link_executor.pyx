"""The executor of a child's way out: what the component has emitted becomes a part of the next frame, and is acked.

    receive queue ─► values of a tuple, or a batch as it is ─► Work ─► the parent

No method of a bolt is called. An ack comes behind its emit, so that a tree ends behind its emits.

Threading law: as every executor.
"""

cimport cython
from cpython.object cimport PyObject

from cython_core.executors.bolt_executor cimport BoltExecutor
from cython_core.executors.executor cimport ps_decref
from cython_core.queues.queues cimport PendingEmits, ReceiveQueue, ps_incref
from cython_core.routing.batch_slice cimport BatchSlice
from cython_core.tuples.tuple cimport Tuple, TupleBatch, take


@cython.final
cdef class LinkExecutor(BoltExecutor):
    """As BoltExecutor. ``attach`` tells where the emits go."""

    def __init__(self, str component not None, int task, instance, PendingEmits pending not None, dict routers not None,
                 ReceiveQueue queue not None, tick_frequency=None, tuple readers=()):
        super().__init__(component, task, instance, pending, routers, queue, tick_frequency, readers)
        queue.takes_batches = True

    def attach(self, outbox):
        """``outbox``: its ``work`` takes the emits, ``carried`` makes a batch one of them, ``send`` makes a frame of
        them."""
        self.outbox = outbox
        self.work_up = outbox.work

    cdef long consume(self, long quota) except -1:
        cdef long calls = 0
        cdef void *item
        cdef Tuple tup
        cdef object payload
        while calls < quota:
            item = self.poll_elsewhere()
            if item is NULL:
                break
            calls += 1
            if not take(<Tuple>item):
                self.skip(<PyObject *>item)
                continue
            tup = <Tuple>item
            ps_decref(<PyObject *>item)
            payload = tup.payload
            if isinstance(payload, BatchSlice):
                self.work_up.weight += (<BatchSlice>payload).weight
                self.work_up.add_emit(tup, self.outbox.carried((<BatchSlice>payload).batch()))
                self.release_at(self.place, <TupleBatch>payload)
            elif isinstance(payload, TupleBatch):
                calls -= 1
                ps_incref(<PyObject *>tup)
                self.open_rows(<PyObject *>tup)
                continue
            else:
                self.work_up.add_emit(tup, payload if type(payload) is tuple else tuple(payload))
            self.collector.ack(tup)
            if self.work_up.is_full():
                self.outbox.send()
        return calls
