from libc.stdint cimport uint64_t

cdef uint64_t stable_hash(object value) except? 0
