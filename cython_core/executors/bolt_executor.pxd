from cython_core.executors.bolt_many cimport BoltMany


cdef class BoltExecutor(BoltMany):
    cdef long work(self, long quota) except -1
    cdef long force_feed(self, long quota) except -1
    cdef long consume(self, long quota) except -1
