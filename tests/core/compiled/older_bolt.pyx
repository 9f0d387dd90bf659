"""A compiled bolt, to be built for another version than the installed one."""

from cython_core.compiled.bolt cimport CompiledBolt, field
from cython_core.tuples.tuple cimport Tuple

from pystorm_source import Bolt

print("the module's own code runs")


cdef class _Id(CompiledBolt):
    cdef int process_tuple(self, Tuple tup) except -1:
        return self.emit1(field(tup, 0))


class Id(_Id, Bolt):
    outputs = ["n long"]
