"""Declares what component_base.pyx and its parts define: bolt_base.pxi, spout_base.pxi."""


# bolt_base.pxi

cdef class BoltBase:
    pass


cdef class ArrowBase(BoltBase):
    pass


# spout_base.pxi

cdef class SpoutBase:
    pass
