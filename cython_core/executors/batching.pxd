from cython_core.routing.output_collector cimport BoltBase


cdef class BatchingBase(BoltBase):
    # Has no fields: see output_collector.pyx.
    pass
