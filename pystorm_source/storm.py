"""The names that streamparse users import from ``.storm``: every kind of component."""

from pystorm_source.bolt import BatchingBolt, Bolt, JavaBolt, ShellBolt, TicklessBatchingBolt
from pystorm_source.component import Component, StormHandler, Tuple
from pystorm_source.spout import JavaSpout, ReliableSpout, ShellSpout, Spout

__all__ = [
    "BatchingBolt",
    "Bolt",
    "Component",
    "JavaBolt",
    "JavaSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StormHandler",
    "TicklessBatchingBolt",
    "Tuple",
]
