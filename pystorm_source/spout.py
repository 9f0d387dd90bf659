"""The names that streamparse and pystorm users import from ``.spout``."""

from pystorm_source.api.component import Component
from pystorm_source.api.foreign_components import JavaSpout, ShellSpout
from pystorm_source.api.partitioned_spout import PartitionedSpout, Snapshot
from pystorm_source.api.reliable_spout import ReliableSpout
from pystorm_source.api.spout import Spout

__all__ = [
    "Component",
    "JavaSpout",
    "PartitionedSpout",
    "ReliableSpout",
    "ShellSpout",
    "Snapshot",
    "Spout",
]
