"""What streamparse and pystorm users import from ``.bolt``."""

from cython_core.tuple import Tuple
from pystorm_source.api.bolt import Bolt
from pystorm_source.api.component import Component
from pystorm_source.api.foreign_components import JavaBolt, ShellBolt

__all__ = [
    "Bolt",
    "Component",
    "JavaBolt",
    "ShellBolt",
    "Tuple",
]
