"""Frames whose memory is used again.

The C library gives the memory of a large block back to the operating system with each free, and each new block costs a
page fault per page: for an Arrow batch of a megabyte five times as long as copying it.
"""

from libc.stdlib cimport free
from posix.stdlib cimport posix_memalign

cdef enum:
    LARGE = 1 << 16             # bytes. Less: small frames take a block of a page or more. More: page faults.
    ALIGNED = 64                # as Arrow wishes
    MOST_KEPT = 8               # blocks. Fewer: page faults, if a bolt keeps some batches. More: a longer search.
    MOST_KEPT_BYTES = 1 << 25   # together. Less: page faults. More: memory that nothing uses.

# The blocks of this process, guarded by the interpreter's lock.
cdef struct KeptBlock:
    void *memory
    size_t size

cdef KeptBlock[MOST_KEPT] kept_blocks
cdef int kept_count = 0
cdef size_t kept_bytes = 0


@cython.final
cdef class LargeFrame:
    """A frame of this length, to be filled in C; read-only by the buffer protocol, like bytes."""

    cdef void *memory
    cdef size_t size
    cdef Py_ssize_t length

    def __cinit__(self, Py_ssize_t length):
        cdef int best = -1
        cdef int i
        global kept_count, kept_bytes
        self.length = length
        for i in range(kept_count):
            # Not one of many times its size: it would be missing where it is needed.
            if <size_t>length <= kept_blocks[i].size <= 4 * <size_t>length and (
                best < 0 or kept_blocks[i].size < kept_blocks[best].size
            ):
                best = i
        if best >= 0:
            self.memory, self.size = kept_blocks[best].memory, kept_blocks[best].size
            kept_count -= 1
            kept_blocks[best].memory = kept_blocks[kept_count].memory
            kept_blocks[best].size = kept_blocks[kept_count].size
            kept_bytes -= self.size
            return
        # Some room, for the next frame is seldom of the same length.
        self.size = (<size_t>length + (<size_t>length >> 3) + ALIGNED - 1) // ALIGNED * ALIGNED
        if posix_memalign(&self.memory, ALIGNED, self.size) != 0:
            self.memory = NULL
            raise MemoryError()

    def __dealloc__(self):
        global kept_count, kept_bytes
        if self.memory is NULL:
            return
        if kept_count < MOST_KEPT and kept_bytes + self.size <= MOST_KEPT_BYTES:
            kept_blocks[kept_count].memory = self.memory
            kept_blocks[kept_count].size = self.size
            kept_count += 1
            kept_bytes += self.size
        else:
            free(self.memory)

    def __len__(self):
        return self.length

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.memory, self.length, 1, flags)
