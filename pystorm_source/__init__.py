"""Storm-style topologies in Python as a streaming data source for Spark.

Write spouts and bolts, wire them in a ``Topology``, and read it: ``spark.readStream.format("pystorm")``.
Importing this package imports no pyspark; ``apply``, ``counts_of``, ``dead_letters``, ``redrive_rows``, ``register``,
``read_stream``, ``read``, ``await_query``, ``explain``, ``progress``, ``show_progress``, ``stacks``, ``ui`` and
``PystormProgressListener`` do when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pystorm_source import compiled
from pystorm_source.version import __version__

if compiled.complaint():
    # An import of the core then raises the remedy; `pystorm-source check` does not need the core.
    compiled.explain_imports()
else:
    from pystorm_source.api import (
        ArrowBolt,
        AsyncBolt,
        BatchingBolt,
        Bolt,
        Component,
        ComponentSpec,
        GlobalStreamId,
        Grouping,
        Input,
        JavaBolt,
        JavaSpout,
        JoinBolt,
        PartitionedSpout,
        ReliableSpout,
        ShellBolt,
        ShellSpout,
        Snapshot,
        Spout,
        StatefulBolt,
        StormHandler,
        Stream,
        TicklessBatchingBolt,
        Topology,
        Tuple,
        TupleList,
    )
    from pystorm_source.api.topology import Drawing
    from pystorm_source.exceptions import Hopeless, RetryLater

    def _svg_of(topology: type[Topology]) -> str | None:
        from pystorm_source.plan.notebook import svg_of  # only a notebook needs it

        return svg_of(topology)

    def _html_of(topology: type[Topology]) -> str:
        from pystorm_source.plan.notebook import html_of

        return html_of(topology)

    Topology.drawn_by(Drawing(_svg_of, _html_of))

if TYPE_CHECKING:
    from pystorm_source.operator.apply import apply
    from pystorm_source.operator.counts_of import counts_of
    from pystorm_source.operator.dead_letters import dead_letters, redrive_rows
    from pystorm_source.operator.read import read, read_stream
    from pystorm_source.source.job.await_query import await_query
    from pystorm_source.source.job.explain import explain
    from pystorm_source.source.job.progress import progress
    from pystorm_source.source.job.progress_listener import PystormProgressListener
    from pystorm_source.source.job.show_progress import show_progress
    from pystorm_source.source.job.stacks import stacks
    from pystorm_source.source.job.ui import ui
    from pystorm_source.source.register import register
    from pystorm_source.states import (
        NonTransactionalMapState,
        OpaqueMapState,
        TransactionalMapState,
        persistent_aggregate,
    )

__all__ = [
    "ArrowBolt",
    "AsyncBolt",
    "BatchingBolt",
    "Bolt",
    "Component",
    "ComponentSpec",
    "GlobalStreamId",
    "Grouping",
    "Hopeless",
    "Input",
    "JavaBolt",
    "JavaSpout",
    "JoinBolt",
    "NonTransactionalMapState",
    "OpaqueMapState",
    "PartitionedSpout",
    "PystormProgressListener",
    "ReliableSpout",
    "RetryLater",
    "ShellBolt",
    "ShellSpout",
    "Snapshot",
    "Spout",
    "StatefulBolt",
    "StormHandler",
    "Stream",
    "TicklessBatchingBolt",
    "Topology",
    "TransactionalMapState",
    "Tuple",
    "TupleList",
    "__version__",
    "apply",
    "await_query",
    "counts_of",
    "dead_letters",
    "explain",
    "persistent_aggregate",
    "progress",
    "read",
    "read_stream",
    "redrive_rows",
    "register",
    "show_progress",
    "stacks",
    "ui",
]

_OPERATOR = {
    "apply": "apply",
    "counts_of": "counts_of",
    "dead_letters": "dead_letters",
    "read": "read",
    "read_stream": "read",
    "redrive_rows": "dead_letters",
}
_STATES = ("NonTransactionalMapState", "OpaqueMapState", "TransactionalMapState", "persistent_aggregate")


def __dir__() -> list[str]:
    """What is there for users: neither the modules that are imported by now nor what this one needs."""
    return __all__


def __getattr__(name: str) -> Any:
    if name == "register":
        from pystorm_source.source.register import register

        return register
    if name in _STATES:
        return getattr(importlib.import_module("pystorm_source.states"), name)
    if name in _OPERATOR:
        return getattr(importlib.import_module(f"pystorm_source.operator.{_OPERATOR[name]}"), name)
    if name in ("await_query", "explain", "progress", "show_progress", "stacks", "ui"):
        return getattr(importlib.import_module(f"pystorm_source.source.job.{name}"), name)
    if name == "PystormProgressListener":
        from pystorm_source.source.job.progress_listener import PystormProgressListener

        return PystormProgressListener
    if name in __all__:
        compiled.require_core()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
