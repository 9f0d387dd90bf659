from cython_core.routing.bolt_base cimport BoltBase


cdef class BatchingBase(BoltBase):
    # Has no fields: see output_collector.pyx.
    pass
