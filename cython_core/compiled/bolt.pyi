from typing_extensions import disjoint_base

from cython_core.routing.component_base import BoltBase
from cython_core.tuples.tuple import Tuple

@disjoint_base
class CompiledBolt(BoltBase):
    def process(self, tup: Tuple) -> None: ...
