"""What a user subclasses and writes."""

from cython_core.tuple import Tuple
from pystorm_source.api.bolt import Bolt
from pystorm_source.api.component import Component
from pystorm_source.api.component_log import LogStream, StormHandler
from pystorm_source.api.component_spec import ComponentSpec, GlobalStreamId
from pystorm_source.api.foreign_components import JavaBolt, JavaSpout, ShellBolt, ShellSpout
from pystorm_source.api.grouping import Grouping
from pystorm_source.api.partitioned_spout import PartitionedSpout, Snapshot
from pystorm_source.api.spout import Spout
from pystorm_source.api.stream import Stream
from pystorm_source.api.topology import Topology

__all__ = [
    "Bolt",
    "Component",
    "ComponentSpec",
    "GlobalStreamId",
    "Grouping",
    "JavaBolt",
    "JavaSpout",
    "LogStream",
    "PartitionedSpout",
    "ShellBolt",
    "ShellSpout",
    "Snapshot",
    "Spout",
    "StormHandler",
    "Stream",
    "Topology",
    "Tuple",
]
