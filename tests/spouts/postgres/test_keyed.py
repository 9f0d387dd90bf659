"""Tables by an ascending column, from a real PostgreSQL whose transactions commit in any order."""

import datetime
import random
from contextlib import ExitStack

import psycopg
import pytest

from pystorm_source import RetryLater
from pystorm_source.errors import WorldError
from pystorm_source.testing.driven import Driven
from pystorm_source.worker.ended_generator import refuse_ended_generator
from tests.channel.reports.made_reports import wait_until
from tests.source.spark_calls import Checkpoint, Run
from tests.spouts.contract import PartitionedSpoutContract
from tests.spouts.postgres.shop import ChangeSpout


def keyed(shop, **more):
    return shop.options(postgres__slot="", postgres__key="id", **more)


def ids(checkpoint):
    return [id for batch in checkpoint.rows for _, _, _, id, _ in batch]


def reads(run, count):
    """Triggers until so many rows are there."""

    def has_read():
        run.trigger()
        return len(ids(run.checkpoint)) >= count

    wait_until(has_read)


class TestContract(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, shop):
        shop.insert(*range(100, 160, 2))
        return Driven(ChangeSpout.spec(config=keyed(shop)))


class TestContractOfTimes(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, shop):
        shop.run(f"ALTER TABLE {shop.name} ADD at timestamptz")
        shop.run(
            f"INSERT INTO {shop.name} SELECT n, 'ink', now() - n * interval '1001 millisecond' "
            "FROM generate_series(1, 40) n"
        )
        return Driven(ChangeSpout.spec(config=keyed(shop) | {"postgres.key": "at", "postgres.key.lag": "0"}))


def test_rows_come_once_from_the_lowest_key_on(shop):
    shop.insert(*range(1000, 1020))
    checkpoint, options = Checkpoint(), keyed(shop, maxOffsetsPerTrigger=7)
    reads(Run(options, checkpoint), 20)
    shop.insert(1020, 1030)
    reads(Run(options, checkpoint), 22)
    assert ids(checkpoint) == [*range(1000, 1021), 1030]
    assert {row[:3] for batch in checkpoint.rows for row in batch} == {("row", None, None)}


def test_a_driver_that_was_killed_reads_the_same_again(shop):
    shop.insert(*range(20))
    checkpoint, options = Checkpoint(), keyed(shop, maxOffsetsPerTrigger=7)
    reads(Run(options, checkpoint), 14)
    lost = checkpoint.rows.pop()
    checkpoint.finished -= 1
    shop.insert(20)
    Run(options, checkpoint)
    assert checkpoint.rows[-1] == lost


def test_keys_of_a_sequence_that_are_committed_late_are_not_missed(shop):
    """Random transactions, whose commits are in another order than their keys."""
    rng, checkpoint = random.Random(3), Checkpoint()
    shop.run(f"CREATE SEQUENCE {shop.name}_ids OWNED BY {shop.name}.id")
    insert = f"INSERT INTO {shop.name} VALUES (nextval('{shop.name}_ids'), 'ink')"
    shop.run(insert)
    run = Run(keyed(shop), checkpoint)
    reads(run, 1)
    with ExitStack() as stack:
        writers = [stack.enter_context(psycopg.connect(shop.server.place)) for _ in range(4)]
        for _ in range(80):
            writer = rng.choice(writers)
            rng.choice((lambda w: w.execute(insert), type(writer).commit, type(writer).rollback))(writer)
            run.trigger()
        for writer in writers:
            writer.commit()
    there = [id for (id,) in shop.run(f"SELECT id FROM {shop.name} ORDER BY id")]
    reads(run, len(there))
    assert ids(checkpoint) == there and len(there) < there[-1], "each once, in order, and some were rolled back"


def test_a_first_look_waits_for_transactions_that_are_writing(shop):
    with psycopg.connect(shop.server.place) as writer:
        writer.execute(f"INSERT INTO {shop.name} VALUES (5, 'ink')")
        shop.insert(6)
        driver = Driven(ChangeSpout.spec(config=keyed(shop))).driver
        with pytest.raises(RetryLater, match="transactions are writing"):
            driver.snapshot({}, {})
    assert driver.snapshot({}, {}).heads == {f"public.{shop.name}": (5, 7)}


def test_a_time_is_read_when_it_is_as_old_as_the_lag(shop):
    shop.run(f"ALTER TABLE {shop.name} ADD at timestamp")
    shop.run(
        f"INSERT INTO {shop.name} VALUES (1, 'a', now()), (2, 'b', now() - interval '1 hour'), (3, 'c', 'infinity')"
    )
    options = keyed(shop) | {"postgres.key": "at", "postgres.key.lag": "60"}
    driven = Driven(ChangeSpout.spec(config=options))
    ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
    assert [values[3] for _, values in driven.read(name, start, end)] == [2]
    hour = datetime.datetime.now(datetime.UTC).timestamp() - 3600
    assert abs(start / 1000 - hour) < 60


def test_partitioned_tables_are_read_as_one(shop):
    shop.run(f"DROP TABLE {shop.name}")
    shop.run(f"CREATE TABLE {shop.name} (id int, item text) PARTITION BY RANGE (id)")
    for low in (0, 10):
        shop.run(f"CREATE TABLE {shop.name}_{low} PARTITION OF {shop.name} FOR VALUES FROM ({low}) TO ({low + 10})")
    shop.insert(*range(20))
    checkpoint = Checkpoint()
    run = Run(keyed(shop), checkpoint)
    reads(run, 20)
    assert ids(checkpoint) == list(range(20))


def collecting(driven):
    """A task, and the ids that it emits."""
    task, ids = driven.instance("task"), []
    task.emit = lambda values, offset: ids.append(values[3])
    return task, ids


def test_a_task_by_key_that_begins_while_the_server_is_down_waits(shop):
    shop.insert(1, 2)
    driven = Driven(ChangeSpout.spec(config=keyed(shop)))
    ((name, bounds),) = driven.driver.snapshot({}, {}).heads.items()
    task, ids = collecting(driven)
    shop.server.kill()
    task.open(name, *bounds)
    try:
        with pytest.raises(RetryLater) as raised:
            task.next_tuple()
        refuse_ended_generator("changes", "next_tuple", raised.value)
    finally:
        shop.start()
    while task.next_tuple() is not False:
        pass
    assert ids == [1, 2]


def test_a_lost_connection_loses_no_row_if_an_emitted_one_was_deleted_meanwhile(shop):
    shop.run(f"INSERT INTO {shop.name} SELECT n, repeat('x', 5000) FROM generate_series(0, 1999) n")
    task, ids = collecting(Driven(ChangeSpout.spec(config=keyed(shop))))
    task.open(f"public.{shop.name}", 0, 2000)  # of more than sockets hold
    for _ in range(5):
        task.next_tuple()
    shop.run(f"DELETE FROM {shop.name} WHERE id IN (1, 4)")
    shop.run(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'COPY (SELECT%%' AND pid <> %s",
        shop.connection.info.backend_pid,
    )
    lost = 0
    while True:
        try:
            if task.next_tuple() is False:
                break
        except RetryLater:
            lost += 1
    assert lost == 1
    assert ids == list(range(2000))


@pytest.mark.parametrize(
    ("wrong", "what"),
    [
        ({"postgres.key": "absent"}, "column 'absent' of table .* is missing"),
        ({"postgres.key": "item"}, "column 'item' of table .* is of type text"),
        ({"postgres.tables": "absent"}, "there is no table public.absent"),
    ],
)
def test_what_cannot_be_read_by_a_key_is_named(shop, wrong, what):
    with pytest.raises(WorldError, match=f"PYSTORM_EXTERNAL_FAILURE.*{what}"):
        Run(keyed(shop) | wrong, Checkpoint()).trigger()
