"""The classes that users subclass and configure."""

from cython_core.routing.tuple_list import TupleList
from cython_core.tuples.tuple import Tuple
from pystorm_source.api.arrow_bolt import ArrowBolt
from pystorm_source.api.async_batch_bolt import AsyncBatchBolt
from pystorm_source.api.async_bolt import AsyncBolt
from pystorm_source.api.batching_bolt import BatchingBolt
from pystorm_source.api.bolt import Bolt
from pystorm_source.api.component import Component
from pystorm_source.api.component_log import LogStream, StormHandler
from pystorm_source.api.component_spec import ComponentSpec, GlobalStreamId
from pystorm_source.api.cursor_spout import CursorSpout
from pystorm_source.api.foreign_components import JavaBolt, JavaSpout, ShellBolt, ShellSpout
from pystorm_source.api.grouping import Grouping
from pystorm_source.api.input import Input
from pystorm_source.api.join_bolt import JoinBolt
from pystorm_source.api.partitioned_spout import PartitionedSpout, Snapshot
from pystorm_source.api.queue_spout import QueueSpout
from pystorm_source.api.reliable_spout import ReliableSpout
from pystorm_source.api.spout import Spout
from pystorm_source.api.stateful_bolt import StatefulBolt
from pystorm_source.api.stream import Stream
from pystorm_source.api.tickless_batching_bolt import TicklessBatchingBolt
from pystorm_source.api.topology import Topology

__all__ = [
    "ArrowBolt",
    "AsyncBatchBolt",
    "AsyncBolt",
    "BatchingBolt",
    "Bolt",
    "Component",
    "ComponentSpec",
    "CursorSpout",
    "GlobalStreamId",
    "Grouping",
    "Input",
    "JavaBolt",
    "JavaSpout",
    "JoinBolt",
    "LogStream",
    "PartitionedSpout",
    "QueueSpout",
    "ReliableSpout",
    "ShellBolt",
    "ShellSpout",
    "Snapshot",
    "Spout",
    "StatefulBolt",
    "StormHandler",
    "Stream",
    "TicklessBatchingBolt",
    "Topology",
    "Tuple",
    "TupleList",
]
