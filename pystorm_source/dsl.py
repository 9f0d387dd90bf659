"""The names that streamparse users import from ``.dsl``: topologies, streams, groupings."""

from pystorm_source.api.component_spec import ComponentSpec, GlobalStreamId
from pystorm_source.api.grouping import Grouping
from pystorm_source.api.stream import Stream
from pystorm_source.api.topology import Topology

__all__ = [
    "ComponentSpec",
    "GlobalStreamId",
    "Grouping",
    "Stream",
    "Topology",
]
