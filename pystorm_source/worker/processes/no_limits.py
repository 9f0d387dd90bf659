"""Limits in a child process: none, and that is said."""

from typing import NoReturn

from pystorm_source.errors import TopologyError


class NoLimits:
    """In the place of a worker's limits: each child would have a whole one for itself."""

    def permits(self, name: str) -> NoReturn:
        """Raises TopologyError."""
        raise TopologyError(
            f"limit({name!r}) in a bolt with processes=: permits are not shared with its processes yet. Leave "
            f"processes= out: a bolt that waits for a service needs no core of its own, and an AsyncBolt makes many "
            f"calls at a time. Given: {name!r}",
            code="PYSTORM_INVALID_TOPOLOGY",
        )
