"""Storm-style topologies in Python as a streaming data source for Spark.

Write spouts and bolts, wire them in a ``Topology``, and read it: ``spark.readStream.format("pystorm")``.
Importing this package does not import pyspark, numpy or pyarrow: the first name that you use imports what it needs.
``apply``, ``counts_of``, ``dead_letters``, ``redrive_rows``, ``register``, ``read_stream``, ``read``, ``await_query``,
``explain``, ``progress``, ``show_progress``, ``stacks``, ``states_of``, ``ui`` and ``PystormProgressListener`` need
pyspark.
"""

import importlib
from typing import TYPE_CHECKING, Any

from pystorm_source.errors import compiled
from pystorm_source.version import __version__

if compiled.complaint():
    # An import of the core then raises the remedy; `pystorm-source check` does not need the core.
    compiled.explain_imports()

if TYPE_CHECKING:
    from cython_core.routing.failure_kinds import Hopeless, RetryLater
    from pystorm_source.api import (
        ArrowBolt,
        AsyncBatchBolt,
        AsyncBolt,
        BatchingBolt,
        Bolt,
        Component,
        ComponentSpec,
        CursorSpout,
        GlobalStreamId,
        Grouping,
        Input,
        JavaBolt,
        JavaSpout,
        JoinBolt,
        PartitionedSpout,
        QueueSpout,
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
    from pystorm_source.operator.apply import apply
    from pystorm_source.operator.counts_of import counts_of
    from pystorm_source.operator.dead_letters import dead_letters, redrive_rows
    from pystorm_source.operator.read import read, read_stream
    from pystorm_source.operator.states_of import states_of
    from pystorm_source.query.await_query import await_query
    from pystorm_source.query.explain import explain
    from pystorm_source.query.progress import progress
    from pystorm_source.query.progress_listener import PystormProgressListener
    from pystorm_source.query.show_progress import show_progress
    from pystorm_source.query.stacks import stacks
    from pystorm_source.query.ui import ui
    from pystorm_source.source.register import register
    from pystorm_source.states import (
        NonTransactionalMapState,
        OpaqueMapState,
        TransactionalMapState,
        persistent_aggregate,
    )

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
    "Hopeless",
    "Input",
    "JavaBolt",
    "JavaSpout",
    "JoinBolt",
    "NonTransactionalMapState",
    "OpaqueMapState",
    "PartitionedSpout",
    "PystormProgressListener",
    "QueueSpout",
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
    "states_of",
    "ui",
]

NOT_SHOWN = {
    "Component",
    "ComponentSpec",
    "JavaBolt",
    "JavaSpout",
    "NonTransactionalMapState",
    "OpaqueMapState",
    "ShellBolt",
    "ShellSpout",
    "StormHandler",
    "TicklessBatchingBolt",
    "TransactionalMapState",
    "TupleList",
    "persistent_aggregate",
    "states_of",
}
"""Importable like the others, but left out of a notebook's completion: names that only code for streamparse uses, types
that a topology does not need to name, the room ``states``, and what looks into a checkpoint."""

_API = "pystorm_source.api"
_OPERATOR = "pystorm_source.operator"
_QUERY = "pystorm_source.query"
_HOMES = {
    "Hopeless": "cython_core.routing.failure_kinds",
    "NonTransactionalMapState": "pystorm_source.states",
    "OpaqueMapState": "pystorm_source.states",
    "PystormProgressListener": f"{_QUERY}.progress_listener",
    "RetryLater": "cython_core.routing.failure_kinds",
    "TransactionalMapState": "pystorm_source.states",
    "apply": f"{_OPERATOR}.apply",
    "await_query": f"{_QUERY}.await_query",
    "counts_of": f"{_OPERATOR}.counts_of",
    "dead_letters": f"{_OPERATOR}.dead_letters",
    "explain": f"{_QUERY}.explain",
    "persistent_aggregate": "pystorm_source.states",
    "progress": f"{_QUERY}.progress",
    "read": f"{_OPERATOR}.read",
    "read_stream": f"{_OPERATOR}.read",
    "redrive_rows": f"{_OPERATOR}.dead_letters",
    "register": "pystorm_source.source.register",
    "show_progress": f"{_QUERY}.show_progress",
    "stacks": f"{_QUERY}.stacks",
    "states_of": f"{_OPERATOR}.states_of",
    "ui": f"{_QUERY}.ui",
}
"""The module of each name of ``__all__`` that the API does not have."""
_MODULES = ("api", "clock", "errors", "exceptions", "limits", "options")
"""Modules that ``import pystorm_source`` is enough for: ``pystorm_source.errors.DataLossError``."""


def __dir__() -> list[str]:
    """The names for users: neither the modules that are imported by now nor what this one needs."""
    return [name for name in __all__ if name not in NOT_SHOWN]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    compiled.require_core()
    home = _HOMES.get(name, _API)
    found = getattr(importlib.import_module(home), name)
    if home == _API:
        globals()[name] = found
    if name == "Topology":
        _let_notebooks_draw(found)
    return found


def _let_notebooks_draw(topology: type[Any]) -> None:
    """Tells the API how notebooks show a topology: its room knows no plan."""
    from pystorm_source.api.topology import Drawing

    def svg_of(shown: type[Any]) -> str | None:
        from pystorm_source.plan.notebook import svg_of  # only a notebook needs it

        return svg_of(shown)

    def html_of(shown: type[Any]) -> str:
        from pystorm_source.plan.notebook import html_of

        return html_of(shown)

    topology.drawn_by(Drawing(svg_of, html_of))
