"""The names that streamparse users import from ``.dsl``: topologies, streams, groupings."""

from pystorm_source import Topology
from pystorm_source.api.component_spec import ComponentSpec, GlobalStreamId
from pystorm_source.api.grouping import Grouping
from pystorm_source.api.stream import Stream

__all__ = [
    "ComponentSpec",
    "GlobalStreamId",
    "Grouping",
    "Stream",
    "Topology",
]
