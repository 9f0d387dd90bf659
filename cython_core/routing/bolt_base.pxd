cdef class BoltBase:
    pass


cdef class ArrowBase(BoltBase):
    pass
