"""The names that streamparse and pystorm users import from ``.bolt``."""

from cython_core.tuples.tuple import Tuple
from pystorm_source.api.arrow_bolt import ArrowBolt
from pystorm_source.api.async_batch_bolt import AsyncBatchBolt
from pystorm_source.api.async_bolt import AsyncBolt
from pystorm_source.api.batching_bolt import BatchingBolt
from pystorm_source.api.bolt import Bolt
from pystorm_source.api.component import Component
from pystorm_source.api.foreign_components import JavaBolt, ShellBolt
from pystorm_source.api.tickless_batching_bolt import TicklessBatchingBolt

__all__ = [
    "ArrowBolt",
    "AsyncBatchBolt",
    "AsyncBolt",
    "BatchingBolt",
    "Bolt",
    "Component",
    "JavaBolt",
    "ShellBolt",
    "TicklessBatchingBolt",
    "Tuple",
]
