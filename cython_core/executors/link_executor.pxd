cimport cython

from cython_core.executors.bolt_executor cimport BoltExecutor
from cython_core.executors.child_end cimport Work
from cython_core.queues.queues cimport PendingEmits, ReceiveQueue


@cython.final
cdef class LinkExecutor(BoltExecutor):
    cdef Work work_up           # what is to go up
    cdef object outbox
