"""Queues between executors: what a bolt reads, and what its producers fill."""

# Of batches that a consumer has not finished. Smaller: large batches go one by one. Larger: a slow bolt fills the
# memory.
cdef unsigned long long DEFAULT_BYTE_LIMIT = 64 << 20

include "receive_queue.pxi"
include "broadcast_ring.pxi"
include "batch_inserter.pxi"
include "flush_timer.pxi"
