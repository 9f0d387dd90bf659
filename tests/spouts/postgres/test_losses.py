"""What others do to a slot or its copies: rows are read, or their loss is an error, never silence."""

import psycopg
import pytest

from pystorm_source.errors import DataLossError, OptionError, WorldError
from pystorm_source.source.data_source import PystormDataSource
from pystorm_source.testing.driven import Driven
from pystorm_source.worker.failure import TupleFailed
from tests.channel.reports.made_reports import wait_until
from tests.source.spark_calls import Checkpoint, Run
from tests.spouts.postgres.shop import ChangeSpout, begun, changes, rows


def drop_slot(shop):
    shop.run("SELECT pg_drop_replication_slot(%s)", shop.name)


def test_a_dropped_slot_and_a_new_checkpoint_start_over(shop):
    """The copies of the first query are still there: they are dropped by its second micro-batch of changes."""
    shop.insert(1, 2)
    run, checkpoint, _ = begun(shop)
    assert len(rows(checkpoint)) == 2 and shop.copies()
    drop_slot(shop)
    shop.insert(3, 4)
    shop.run(f"DELETE FROM {shop.name} WHERE id = 1")
    checkpoint = Checkpoint()
    run = Run(shop.options(), checkpoint)
    run.drain()
    shop.insert(5)
    run.drain()
    assert [(op, id) for op, id, _ in changes(checkpoint)] == [("snapshot", n) for n in (2, 3, 4)] + [("insert", 5)]


def test_copies_of_a_slot_that_has_moved_since_are_not_read_again(shop, caplog):
    """The driver died between moving the slot and dropping them."""
    shop.insert(1)
    begun(shop)
    shop.insert(2)
    shop.run("SELECT pg_replication_slot_advance(%s, pg_current_wal_insert_lsn())", shop.name)
    shop.insert(3)
    checkpoint = Checkpoint()
    Run(shop.options(), checkpoint).drain()
    assert changes(checkpoint) == [("insert", 3, "ink")]
    assert "without a snapshot" in caplog.text and shop.copies() == []


def test_a_query_that_was_replaced_does_not_drop_the_copies_of_the_next_one(shop):
    shop.insert(1)
    spec = ChangeSpout.spec(config=shop.options())
    old = Driven(spec).driver
    ((_, end),) = (old.snapshot({}, {}).heads["changes"],)
    drop_slot(shop)
    Driven(spec).driver.snapshot({}, {})
    old.commit({"changes": end})
    assert shop.copies()


def test_a_schema_that_has_more_than_copies_is_never_dropped(shop):
    shop.run(f"CREATE SCHEMA pystorm_{shop.name}")
    shop.run(f"CREATE TABLE pystorm_{shop.name}.wages (n int)")
    with pytest.raises(WorldError, match=r"cannot drop schema pystorm_orders.*name another slot"):
        Run(shop.options(), Checkpoint()).trigger()
    assert shop.copies() == ["wages"]


def test_a_query_without_a_snapshot_leaves_a_schema_of_that_name_alone(shop):
    shop.run(f"CREATE SCHEMA pystorm_{shop.name}")
    shop.run(f"CREATE TABLE pystorm_{shop.name}.wages (n int)")
    run, checkpoint, _ = begun(shop, postgres__snapshot=False)
    for id in (1, 2, 3):
        shop.insert(id)
        run.drain()
    assert len(rows(checkpoint)) == 3 and shop.copies() == ["wages"]


def test_a_batch_read_of_a_slot_is_refused(shop):
    source = PystormDataSource(shop.options())
    with pytest.raises(OptionError, match=r"'postgres\.slot' is for streams.*availableNow=True"):
        source.reader(source.schema())
    assert not shop.run("SELECT FROM pg_replication_slots WHERE slot_name = %s", shop.name).fetchall()


def test_a_publication_of_all_tables_has_no_copies_of_any_slot_and_every_table_of_users(shop):
    shop.insert(1)
    shop.run("CREATE SCHEMA pystorm_data")
    shop.run("CREATE TABLE pystorm_data.copies (id int PRIMARY KEY, item text)")
    shop.run("INSERT INTO pystorm_data.copies VALUES (2, 'a')")
    shop.run(f"CREATE PUBLICATION {shop.name} FOR ALL TABLES")
    try:
        run, checkpoint, options = begun(shop, postgres__tables="")
        other = Checkpoint()
        Run(options | {"postgres.slot": f"{shop.name}_b"}, other).drain()
        shop.run("INSERT INTO pystorm_data.copies VALUES (3, 'b')")
        run.drain()
        assert {id for _, id, _ in changes(other)} == {1, 2}
        assert [id for _, id, _ in changes(checkpoint)] == [1, 2, 3]
    finally:
        shop.run("DROP SCHEMA pystorm_data CASCADE")
        shop.tidy(f"{shop.name}_b")


def test_a_slot_that_moved_before_a_micro_batch_ran_again_is_lost_data(shop, caplog):
    run, checkpoint, options = begun(shop)
    shop.insert(1)
    run.drain()
    shop.insert(2)
    middle = shop.run("SELECT pg_current_wal_insert_lsn()").fetchone()[0]
    shop.insert(3)
    run.drain()
    checkpoint.rows.pop()
    checkpoint.finished -= 1
    shop.run("SELECT pg_replication_slot_advance(%s, %s::pg_lsn)", shop.name, middle)
    with pytest.raises(TupleFailed, match="DataLossError.*was moved to .* by others"):
        Run(options, checkpoint)
    Run(options | {"failOnDataLoss": "false"}, checkpoint)
    assert [id for _, id, _ in changes(checkpoint)] == [1, 3]
    assert "the rest is read, as failOnDataLoss is false" in caplog.text


def test_a_slot_that_moves_while_a_task_reads_is_lost_data(shop):
    """Whatever happens between the first look at the slot and its use by the server."""
    driven = Driven(ChangeSpout.spec(config=shop.options(postgres__snapshot=False)))
    ((_, start),) = (driven.driver.snapshot({}, {}).heads["changes"],)
    shop.insert(1, 2)
    _, end = driven.driver.snapshot({"changes": start}, {}).heads["changes"]
    task = driven.instance("task")
    task.emit = lambda values, offset: None
    task.open("changes", start, end)
    task.next_tuple()
    task.next_tuple()

    def is_moved():
        try:
            return shop.run("SELECT pg_replication_slot_advance(%s, pg_current_wal_insert_lsn())", shop.name)
        except psycopg.errors.ObjectInUse:
            return False  # the server still decodes

    wait_until(is_moved)
    with pytest.raises(DataLossError, match="was moved to"):
        task.next_tuple()


def test_copies_that_others_have_dropped_half_read_are_lost_data(shop):
    shop.insert(*range(10))
    checkpoint = Checkpoint()
    Run(shop.options(maxOffsetsPerTrigger=3), checkpoint).trigger()
    assert len(rows(checkpoint)) == 3
    shop.run(f"DROP SCHEMA pystorm_{shop.name} CASCADE")
    with pytest.raises(DataLossError, match=r"partition 'public\.orders_\d+' .* has vanished"):
        Run(shop.options(), checkpoint).trigger()
    shop.insert(10)
    Run(shop.options(failOnDataLoss=False), checkpoint).drain()
    assert [id for _, id, _ in changes(checkpoint)] == [0, 1, 2, 10]


def test_a_task_whose_copy_is_gone_names_the_loss(shop):
    shop.insert(1)
    driven = Driven(ChangeSpout.spec(config=shop.options()))
    driven.driver.snapshot({}, {})
    shop.run(f"DROP SCHEMA pystorm_{shop.name} CASCADE")
    task = driven.instance("task")
    task.open(f"public.{shop.name}", 0, 1)
    with pytest.raises(DataLossError, match=r"has no copy of public\.orders_\d+ any more"):
        task.next_tuple()


def test_a_server_that_was_set_back_is_lost_data(shop):
    """As one that was restored from a backup: what is known lies behind the end of its log."""
    driver = Driven(ChangeSpout.spec(config=shop.options())).driver
    _, head = driver.snapshot({}, {}).heads["changes"]
    known = {"changes": head + 10**9}
    assert driver.snapshot(known, {"copies": "read"}).heads["changes"][1] < known["changes"]


def test_a_slot_may_begin_with_a_digit(shop):
    slot = f"2{shop.name}"
    try:
        Run(shop.options(postgres__slot=slot), Checkpoint()).trigger()
    finally:
        shop.tidy(slot)
