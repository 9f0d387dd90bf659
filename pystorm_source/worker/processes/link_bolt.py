"""The exit of a child's worker; its executor (LinkExecutor) sends everything up that arrives."""

from cython_core.tuples.tuple import Tuple
from pystorm_source.api.bolt import Bolt


class LinkBolt(Bolt):
    """Gets every stream of the component."""

    def process(self, tup: Tuple) -> None:
        """Never called."""
        raise NotImplementedError
