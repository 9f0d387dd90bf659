"""The way out of a child's worker: each emit of the component, with the numbers of the tuples it is anchored to."""

from cython_core.tuples.tuple import Tuple, ids_of_trees
from pystorm_source.api.bolt import Bolt
from pystorm_source.worker.processes.outbox import Outbox


class LinkBolt(Bolt):
    """Gets every stream of the component. Its ack comes behind the emit, so that a tree ends behind its emits."""

    def _pystorm_link(self, outbox: Outbox) -> None:
        self._outbox = outbox

    def process(self, tup: Tuple) -> None:
        """Puts it into the next frame."""
        numbers, lost = ids_of_trees(tup)
        if lost:  # what it was made of has failed in part: nothing of it counts, and the other tuples fail with that
            self._outbox.lost.append(numbers)
        else:
            self._outbox.emits.append((tup.stream, numbers, tuple(tup.values), None))
