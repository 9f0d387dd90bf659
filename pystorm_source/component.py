"""The names that streamparse and pystorm users import from ``.component``."""

from cython_core.tuple import Tuple
from pystorm_source.api.component import Component
from pystorm_source.api.component_log import LogStream, StormHandler
from pystorm_source.errors import StormWentAwayError

__all__ = [
    "Component",
    "LogStream",
    "StormHandler",
    "StormWentAwayError",
    "Tuple",
]
