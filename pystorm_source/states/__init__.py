"""Values by key in a database, kept exactly once from ``foreachBatch``: Trident's map states.

``key`` → ``value_text`` → ``store`` (``sql_store``, ``redis_store``) ← ``map_state`` ← ``state_batch``;
``persistent_aggregate`` joins a state to a query. Needs no topology.
"""

from pystorm_source.states.map_state import MapState, NonTransactionalMapState, OpaqueMapState, TransactionalMapState
from pystorm_source.states.persistent_aggregate import persistent_aggregate
from pystorm_source.states.redis_store import RedisStore
from pystorm_source.states.sql_store import SqlStore
from pystorm_source.states.state_batch import StateBatch
from pystorm_source.states.store import Entry, MemoryStore, Store

__all__ = [
    "Entry",
    "MapState",
    "MemoryStore",
    "NonTransactionalMapState",
    "OpaqueMapState",
    "RedisStore",
    "SqlStore",
    "StateBatch",
    "Store",
    "TransactionalMapState",
    "persistent_aggregate",
]
