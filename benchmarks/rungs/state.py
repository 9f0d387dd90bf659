"""Keys per second into PostgreSQL by a state, against an upsert by hand of the same rows.

    opaque              OpaqueMapState as it is: with its cache, which holds the previous batch's keys
    opaque-uncached     the same with ``cache=0``: every batch reads its keys first
    opaque-roomy-peer   like the first, but the peer's table has room in its pages, like ours (``fillfactor = 50``)
    transactional       TransactionalMapState as it is

Each batch has the same 10,000 keys with other amounts; a run is ten of them. The peer is one statement with psycopg in
one transaction: ``INSERT … SELECT FROM unnest(…) ON CONFLICT DO UPDATE SET amount = totals.amount + excluded.amount``,
the fastest that we know. It is not exactly-once: a repeated batch counts twice. A separate server runs on this machine,
with PostgreSQL's defaults for durability, including fsync. Both totals are compared at the end.
"""

import time
from collections.abc import Callable, Iterator
from operator import add
from typing import Any

import psycopg

from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import Record, record
from pystorm_source.states import MapState, OpaqueMapState, TransactionalMapState
from testbed.postgres_server import PostgresServer, postgres_server

ASKED = 0.7
KEYS, BATCHES, RUNS = 10_000, 10, 7
QUICK_KEYS = 500
KINDS: dict[str, tuple[type[MapState[float]], dict[str, Any]]] = {
    "opaque": (OpaqueMapState, {}),
    "opaque-uncached": (OpaqueMapState, {"cache": 0}),
    "opaque-roomy-peer": (OpaqueMapState, {}),
    "transactional": (TransactionalMapState, {}),
}
DURABLE = {"fsync": "on", "shared_buffers": "128MB"}


def run(settings: Settings) -> Iterator[Record]:
    """Measures each kind in turn with an upsert."""
    keys = QUICK_KEYS if settings.quick else KEYS
    with postgres_server(DURABLE) as server:
        for case, (kind, options) in KINDS.items():
            if settings.wants(case):
                yield _measured(server, case, kind, options, keys, settings.runs_of(RUNS))


def _measured(
    server: PostgresServer, case: str, kind: type[MapState[float]], options: dict[str, Any], keys: int, runs: int
) -> Record:
    table = f"by_hand_{case.replace('-', '_')}"
    state = kind(server.url, case, **options)
    with psycopg.connect(server.place) as database:
        room = " WITH (fillfactor = 50)" if case.endswith("roomy-peer") else ""
        database.execute(f"CREATE TABLE {table} (key text PRIMARY KEY, amount double precision){room}")
        database.commit()

        def ours(number: int, amounts: dict[str, float]) -> None:
            state.aggregate(number, amounts, add)

        def by_hand(number: int, amounts: dict[str, float]) -> None:
            with database.transaction():
                database.execute(
                    f"INSERT INTO {table} SELECT * FROM unnest(%s::text[], %s::double precision[]) "
                    f"ON CONFLICT (key) DO UPDATE SET amount = {table}.amount + excluded.amount",
                    [list(amounts), list(amounts.values())],
                )

        sides: dict[str, Callable[[int, dict[str, float]], None]] = {"ours": ours, "by hand": by_hand}
        rates: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(runs + 1):
            for name, side in sides.items():
                rate = keys * BATCHES / _seconds(side, turn, keys)
                if turn > 0:  # the first turn creates the rows
                    rates[name].append(rate)
        totals = dict(database.execute(f"SELECT key, amount FROM {table}").fetchall())
        version = str(database.info.server_version // 10_000)
    if dict(zip(totals, state.multi_get(totals), strict=True)) != totals:
        raise RuntimeError(f"{case}: the totals differ from those by hand")
    return record(
        "state",
        case,
        rates["ours"],
        "keys/s",
        peer="an upsert by hand, not exactly once",
        peer_version=f"PostgreSQL {version}, psycopg {psycopg.__version__}",
        peer_values=rates["by hand"],
        asked=ASKED if case == "opaque" else None,
        keys=keys,
    )


def _seconds(side: Callable[[int, dict[str, float]], None], turn: int, keys: int) -> float:
    """Returns the seconds of a run's batches."""
    numbers = range(turn * BATCHES, (turn + 1) * BATCHES)
    batches = [(number, {f"customer-{n}": float(n % 7 + number) for n in range(keys)}) for number in numbers]
    began = time.perf_counter()
    for number, amounts in batches:
        side(number, amounts)
    return time.perf_counter() - began
