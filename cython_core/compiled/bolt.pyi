from cython_core.routing.output_collector import BoltBase
from cython_core.tuples.tuple import Tuple

class CompiledBolt(BoltBase):
    def process(self, tup: Tuple) -> None: ...
