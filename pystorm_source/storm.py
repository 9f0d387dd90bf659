"""What streamparse users import from ``.storm``: every kind of component."""

from pystorm_source.bolt import Bolt, JavaBolt, ShellBolt
from pystorm_source.component import Component, StormHandler, Tuple
from pystorm_source.spout import JavaSpout, ShellSpout, Spout

__all__ = [
    "Bolt",
    "Component",
    "JavaBolt",
    "JavaSpout",
    "ShellBolt",
    "ShellSpout",
    "Spout",
    "StormHandler",
    "Tuple",
]
