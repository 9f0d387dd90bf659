"""Examples of errors about map states: each asks a real store."""

from operator import add

from pystorm_source.states import MemoryStore, OpaqueMapState, TransactionalMapState
from tests.docs.errors.examples import raises


@raises("PYSTORM_BATCH_BEHIND_STATE", "The query was started with a new checkpoint, and the state has its old name.")
def _():
    store = MemoryStore()
    TransactionalMapState(store).aggregate(41, {"ann": 5}, add)
    TransactionalMapState(store).aggregate(0, {"ann": 5}, add)


@raises("PYSTORM_STATE_OF_ANOTHER_KIND")
def _():
    TransactionalMapState("sqlite:///totals.db", "totals").aggregate(0, {"ann": 5}, add)
    OpaqueMapState("sqlite:///totals.db", "totals").aggregate(1, {"ann": 5}, add)


@raises("PYSTORM_INVALID_ARGUMENT")
def _():
    TransactionalMapState("mysql://shop@database/totals", "totals")


@raises("PYSTORM_STORE_UNREACHABLE", "No Redis listens at that address.")
def _():
    TransactionalMapState("redis://127.0.0.1:9/0", "totals").get("ann")
