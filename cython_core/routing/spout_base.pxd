cdef class SpoutBase:
    pass
