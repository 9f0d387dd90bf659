"""The changes of tables, from a real PostgreSQL, mostly as Spark calls the spout, without Spark."""

import json
import random
import threading

import psycopg
import pytest

from pystorm_source.errors import DataLossError, OptionError, WorldError
from pystorm_source.spouts import PostgresSpout
from pystorm_source.spouts.postgres import client
from pystorm_source.spouts.postgres.changes import LOOK_BYTES
from pystorm_source.testing.driven import Driven
from tests.channel.reports.made_reports import wait_until
from tests.source.spark_calls import Checkpoint, Run
from tests.spouts.contract import PartitionedSpoutContract
from tests.spouts.postgres.shop import ChangeSpout, begun, changes, rows

EVERYTHING = "tests.spouts.postgres.shop:Everything"


class TestContractOfChanges(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, shop):
        driven = Driven(ChangeSpout.spec(config=shop.options(postgres__snapshot=False)))
        driven.driver.snapshot({}, {})
        for n in range(0, 60, 3):
            shop.insert(n, n + 1, n + 2)
        return driven


class TestContractOfTheSnapshot(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, shop):
        shop.insert(*range(50))
        return Driven(ChangeSpout.spec(config=shop.options()))


def test_first_the_rows_of_the_table_then_its_changes(shop):
    shop.insert(1, 2)
    checkpoint, options = Checkpoint(), shop.options()
    run = Run(options, checkpoint)
    run.trigger()
    assert changes(checkpoint) == [("snapshot", 1, "ink"), ("snapshot", 2, "ink")]
    assert shop.copies() == ["pystorm_copies", "pystorm_copy_0"]
    with shop.connection.transaction():
        shop.insert(3)
        shop.run(f"UPDATE {shop.name} SET item = 'pen' WHERE id = 1")
    shop.run(f"DELETE FROM {shop.name} WHERE id = 2")
    shop.run(f"TRUNCATE {shop.name}")
    run.drain()
    assert changes(checkpoint)[2:] == [
        ("insert", 3, "ink"),
        ("update", 1, "pen"),
        ("delete", 2, None),
        ("truncate", None, None),
    ]
    places = [(lsn, seq) for _, lsn, seq, *_ in rows(checkpoint)[2:]]
    assert places == sorted(set(places)) and [seq for _, seq in places] == [0, 1, 0, 0]
    shop.insert(4)
    run.drain()
    shop.insert(5)
    run.drain()
    assert changes(checkpoint)[6:] == [("insert", 4, "ink"), ("insert", 5, "ink")]
    assert shop.copies() == [], "dropped once they are committed"


def test_rows_that_are_written_while_the_slot_is_made_are_in_the_snapshot_or_a_change(shop):
    """A transaction that is open while the slot is made, of which it waits for the end."""

    shop.insert(1)
    with psycopg.connect(shop.server.place) as other:
        other.execute(f"INSERT INTO {shop.name} VALUES (2, 'ink')")
        checkpoint = Checkpoint()
        run = Run(shop.options(), checkpoint)
        thread = threading.Thread(target=run.trigger)
        thread.start()
        waits = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'CREATE_REPLICATION_SLOT%' AND state = 'active'"
        wait_until(lambda: shop.run(waits).fetchone()[0])
        shop.insert(3)
        other.commit()
        thread.join(60)
    run.drain()
    assert sorted(id for _, id, _ in changes(checkpoint)) == [1, 2, 3]


def test_a_driver_that_was_killed_reads_the_same_again(shop):
    shop.insert(*range(20))
    checkpoint, options = Checkpoint(), shop.options(maxOffsetsPerTrigger=7)
    for _ in range(3):
        Run(options, checkpoint).trigger()
        lost = checkpoint.rows.pop()
        checkpoint.finished -= 1
        Run(options, checkpoint)  # runs it again
        assert checkpoint.rows[-1] == lost and lost
    assert [id for _, id, _ in changes(checkpoint)] == list(range(20))
    shop.insert(20, 21)
    Run(shop.options(), checkpoint).drain()
    lost = checkpoint.rows.pop()
    checkpoint.finished -= 1
    Run(shop.options(), checkpoint)
    assert checkpoint.rows[-1] == lost


def test_a_driver_that_was_killed_while_it_copied_begins_anew(shop):
    shop.insert(1)
    shop.run(f"CREATE PUBLICATION {shop.name} FOR TABLE {shop.name}")
    shop.run(f"CREATE SCHEMA pystorm_{shop.name}")
    shop.run("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", shop.name)
    shop.insert(2)  # behind that slot
    checkpoint = Checkpoint()
    Run(shop.options(), checkpoint).drain()
    assert changes(checkpoint) == [("snapshot", 1, "ink"), ("snapshot", 2, "ink")]


def test_an_existing_slot_is_read_from_where_it_stands_without_a_snapshot(shop, caplog):
    shop.insert(1)
    shop.run(f"CREATE PUBLICATION {shop.name} FOR TABLE {shop.name}")
    shop.run("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", shop.name)
    shop.insert(2)
    checkpoint = Checkpoint()
    Run(shop.options(postgres__create=False), checkpoint).drain()
    assert changes(checkpoint) == [("insert", 2, "ink")]


def test_rows_are_maps_with_what_was_before_and_large_values_that_did_not_change(shop):
    _, checkpoint, options = begun(shop, topology=EVERYTHING)
    large = "".join(random.Random(1).choices("abcdefghijklmnop", k=9000))
    shop.run(f"ALTER TABLE {shop.name} ADD n numeric, ADD raw bytea, ALTER item SET STORAGE EXTERNAL")
    shop.run(f"INSERT INTO {shop.name} VALUES (1, %s, 1.50, '\\xff00')", large)
    shop.run(f"UPDATE {shop.name} SET n = 'NaN'")
    shop.run(f"UPDATE {shop.name} SET id = 2, n = null")
    shop.run(f"ALTER TABLE {shop.name} REPLICA IDENTITY FULL")
    shop.run(f"UPDATE {shop.name} SET n = 7")
    shop.run(f"DELETE FROM {shop.name}")
    Run(options, checkpoint).drain()
    found = [(op, dict(row), old and dict(old), unchanged) for _, _, op, *_, row, old, unchanged in rows(checkpoint)]
    full = {"id": "2", "item": large, "n": None, "raw": "\\xff00"}
    assert found == [
        ("insert", {"id": "1", "item": large, "n": "1.50", "raw": "\\xff00"}, None, []),
        ("update", {"id": "1", "n": "NaN", "raw": "\\xff00"}, None, ["item"]),
        ("update", {"id": "2", "n": None, "raw": "\\xff00"}, {"id": "1"}, ["item"]),
        ("update", full | {"n": "7"}, full, []),
        ("delete", full | {"n": "7"}, full | {"n": "7"}, []),
    ]
    assert {row[:2] for row in rows(checkpoint)} == {("public", shop.name)}
    assert len({row[6] for row in rows(checkpoint)}) == 5, "each has its transaction"
    assert all(row[5].year >= 2026 for row in rows(checkpoint))


def test_a_row_may_be_json_and_columns_have_types(shop):
    shop.run(
        f"ALTER TABLE {shop.name} ADD ok bool, ADD at timestamptz, ADD day date, ADD n numeric(8,2), ADD f float8, "
        "ADD raw bytea, ADD more jsonb"
    )
    shop.run(
        f"INSERT INTO {shop.name} VALUES (1, 'gr\u00fc\u00df', true, '2026-02-03 04:05:06.7+02', '2026-02-03', 12.5, "
        "'-infinity', '\\x00ff', '{\"a\": [1, 2]}')"
    )
    fields = ["row string", "id long", "ok boolean", "at timestamp", "day date", "n decimal(8,2)", "f double"]
    spec = PostgresSpout.spec(config=shop.options(), fields=[*fields, "raw binary", "more struct<a: array<int>>"])
    driven = Driven(spec)
    (name,) = set(driven.driver.snapshot({}, {}).heads) - {"changes"}
    ((_, (text, *values)),) = driven.read(name, 0, 1)
    assert json.loads(text)["item"] == "gr\u00fc\u00df" and json.loads(text)["more"] == '{"a": [1, 2]}'
    id, ok, at, day, n, f, raw, more = values
    assert (id, ok, str(day), str(n), f, raw, more) == (
        1, True, "2026-02-03", "12.50", float("-inf"), b"\x00\xff", {"a": [1, 2]},
    )  # fmt: skip
    assert at.isoformat() == "2026-02-03T02:05:06.700000+00:00"


def test_a_log_of_other_tables_is_passed_over_in_micro_batches_without_rows(shop):
    """Else the server keeps it for a slot that has nothing to read."""
    run, checkpoint, _ = begun(shop)
    assert not run.trigger(), "nothing is written"
    shop.run("CREATE TABLE other (text text)")
    before = shop.confirmed()
    for _ in range(4):
        shop.run("INSERT INTO other SELECT repeat('x', 1000) FROM generate_series(1, %s)", LOOK_BYTES // 1000)
        run.drain()
    assert rows(checkpoint) == []
    shop.run("DROP TABLE other")
    assert shop.confirmed() - before >= 2 * LOOK_BYTES


def test_the_slot_moves_only_when_a_micro_batch_is_finished(shop):
    run, *_ = begun(shop)
    shop.insert(1)
    begin = shop.confirmed()
    run.drain()
    assert shop.confirmed() == begin, "the last micro-batch may run again"
    shop.insert(2)
    run.drain()
    assert shop.confirmed() > begin


def test_a_server_that_is_killed_and_comes_again_loses_nothing(shop, caplog):
    shop.insert(*range(10))
    checkpoint = Checkpoint()
    run = Run(shop.options(maxOffsetsPerTrigger=6), checkpoint)
    run.trigger()
    shop.server.kill()
    thread = threading.Thread(target=run.drain)  # its task waits in the middle of a micro-batch
    thread.start()
    wait_until(lambda: "next_tuple() raised RetryLater" in caplog.text)
    shop.start()
    thread.join(60)
    shop.insert(10)
    wait_until(lambda: not Run(shop.options(), checkpoint).trigger())
    assert [id for _, id, _ in changes(checkpoint)] == list(range(11))


def test_a_slot_that_is_in_use_is_tried_again(shop):
    run, checkpoint, _ = begun(shop)
    shop.insert(1)
    other = psycopg.connect(shop.server.place, replication="database", autocommit=True)
    named = f"(proto_version '1', publication_names '{shop.name}')"
    other.pgconn.exec_(f"START_REPLICATION SLOT {shop.name} LOGICAL 0/0 {named}".encode())
    assert not run.trigger()
    other.pgconn.finish()
    wait_until(run.trigger)
    assert changes(checkpoint) == [("insert", 1, "ink")]


def test_a_slot_that_is_gone_is_lost_data(shop, caplog):
    run, checkpoint, options = begun(shop)
    shop.insert(1)
    run.drain()
    shop.run("SELECT pg_drop_replication_slot(%s)", shop.name)
    shop.insert(2)
    with pytest.raises(DataLossError, match=r"PYSTORM_DATA_LOST.*slot 'orders_\d+' is gone.*failOnDataLoss=false"):
        Run(options, checkpoint).trigger()
    run = Run(options | {"failOnDataLoss": "false"}, checkpoint)
    run.trigger()
    shop.insert(3)
    run.drain()
    assert changes(checkpoint) == [("insert", 1, "ink"), ("insert", 3, "ink")]
    assert "made anew, as failOnDataLoss is false" in caplog.text


def test_a_slot_that_others_have_moved_is_lost_data(shop):
    run, checkpoint, options = begun(shop)
    shop.insert(1)
    run.drain()
    shop.insert(2)
    shop.run("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", shop.name)
    with pytest.raises(DataLossError, match=r"PYSTORM_DATA_LOST.*changes.* are gone"):
        Run(options, checkpoint).trigger()


def test_a_slot_whose_log_is_gone_is_lost_data(shop):
    _, checkpoint, options = begun(shop)
    shop.run("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    try:
        shop.run("SELECT pg_reload_conf()")
        shop.run("CREATE TABLE other (n int)")
        for _ in range(30):
            shop.run("INSERT INTO other VALUES (1)")
            shop.run("SELECT pg_switch_wal()")
            shop.run("CHECKPOINT")
            if shop.wal_status() == "lost":
                break
        shop.run("DROP TABLE other")
        with pytest.raises(DataLossError, match=r"has lost its log \(max_slot_wal_keep_size\)"):
            Run(options, checkpoint).trigger()
    finally:
        shop.run("ALTER SYSTEM RESET max_slot_wal_keep_size")
        shop.run("SELECT pg_reload_conf()")


def test_what_the_server_refuses_is_named_without_the_password(shop, caplog):
    shop.run("CREATE ROLE guest LOGIN PASSWORD 'hunter2'")
    place = shop.server.place.replace("user=reader", "user=guest password=hunter2")
    shop.run(f"CREATE PUBLICATION {shop.name} FOR TABLE {shop.name}")
    refused = {
        r"permission denied|must be superuser or replication role.*ALTER ROLE … REPLICATION": {"postgres.dsn": place},
        r"role \"nobody\" does not exist.*pg_hba": {"postgres.user": "nobody", "postgres.password": "hunter2"},
        r"does not support SSL.*postgres\.user": {"postgres.sslmode": "require", "postgres.password": "hunter2"},
        r"there is no publication 'absent'.*postgres\.create": {
            "postgres.publication": "absent",
            "postgres.create": "false",
        },
        r"there is no slot 'orders_\d+'.*postgres\.create": {"postgres.create": "false"},
        r"has no table public\.absent.*ADD TABLE": {"postgres.tables": "absent"},
    }
    try:
        for what, given in refused.items():
            with pytest.raises(WorldError, match=f"PYSTORM_EXTERNAL_FAILURE.*({what}).*Given: host=") as raised:
                Run(shop.options() | given, Checkpoint()).trigger()
            assert "hunter2" not in str(raised.value) + caplog.text
    finally:
        shop.run("DROP ROLE guest")


def test_a_publication_needs_tables(shop):
    with pytest.raises(OptionError, match=r"PYSTORM_MISSING_OPTION.*'postgres.tables' is needed"):
        Run(shop.options(postgres__tables=""), Checkpoint()).trigger()


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"postgres.slot": ""}, r"one of the options postgres\.slot, .* is needed\. Given: neither"),
        ({"postgres.key": "id"}, r"PYSTORM_OPTIONS_CONFLICT.*Given: both"),
        ({"postgres.key": "id", "postgres.slot": ""}, r"'postgres\.tables' is needed beside postgres\.key"),
        ({"postgres.key": "id", "postgres.key.lag": "-1"}, r"postgres\.key\.lag"),
        ({"postgres.slot": "Shop-1"}, r"'postgres\.slot' has 1 to 55"),
        ({"postgres.dsn": "host=x password=hunter2 nonsense"}, r"'postgres\.dsn' is a connection string"),
        ({"postgres.port": "0"}, r"postgres\.port"),
    ],
)
def test_wrong_options_are_refused(wrong, what):
    with pytest.raises(OptionError, match=what) as raised:
        PostgresSpout().initialize({"postgres.slot": "shop", "postgres.dsn": "host=x"} | wrong, {})
    assert "hunter2" not in str(raised.value)


def test_a_column_of_a_type_that_no_table_has_is_refused():
    with pytest.raises(Exception, match=r"field 'n' of PostgresSpout cannot have this type"):
        Driven(PostgresSpout.spec(slot="shop", dsn="host=x", fields=["n void"]))


@pytest.mark.parametrize("seed", range(2))
def test_random_writes_and_kills_lose_and_repeat_nothing(shop, seed, monkeypatch):
    """Drivers are killed before and behind a micro-batch, the server at any time. What the rows say is the table."""
    monkeypatch.setattr(client, "PAUSE_SECONDS", 0.05)
    rng, checkpoint = random.Random(seed), Checkpoint()
    shop.insert(*range(20))
    run = Run(shop.options(maxOffsetsPerTrigger=7), checkpoint)
    for step in range(30):
        # Rows of the snapshot, then bytes of the log.
        options = shop.options(maxOffsetsPerTrigger=rng.choice((300, 2_000)) if len(rows(checkpoint)) >= 20 else 7)
        if rng.random() < 0.6:
            with shop.connection.transaction():
                for _ in range(rng.randrange(1, 6)):
                    id = rng.randrange(40)
                    if rng.random() < 0.3:
                        shop.run(f"DELETE FROM {shop.name} WHERE id = %s", id)
                    elif not shop.run(f"UPDATE {shop.name} SET item = %s WHERE id = %s", str(step), id).rowcount:
                        shop.insert(id, item=str(step))
        run.trigger()
        fate = rng.random()
        if fate < 0.15 and checkpoint.finished:
            lost = checkpoint.rows.pop()
            checkpoint.finished -= 1
            run = Run(options, checkpoint)
            assert checkpoint.rows[-1] == lost
        elif fate < 0.3:
            run = Run(options, checkpoint)
        elif fate < 0.35:
            shop.restart()
    run = Run(shop.options(), checkpoint)
    run.drain()
    table: dict[int, str] = {}
    for op, id, item in changes(checkpoint):
        assert (id in table) == (op in ("update", "delete")), (op, id)
        table.pop(id, None)
        if op != "delete":
            table[id] = item
    assert table == dict(shop.run(f"SELECT * FROM {shop.name}").fetchall())
    places = [row[:3] for row in rows(checkpoint)]
    assert len(places) == len(set(places))
