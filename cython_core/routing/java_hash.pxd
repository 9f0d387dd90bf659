from libc.stdint cimport int32_t

cdef int32_t java_hash_of_all(object payload, const Py_ssize_t *positions, Py_ssize_t selected) except? -1
