"""By a key: a row whose transaction commits after a larger key did is not missed, wherever its writer is."""

import os
from contextlib import contextmanager, suppress

import psycopg
import pytest

from pystorm_source import RetryLater
from pystorm_source.errors import WorldError
from pystorm_source.testing.driven import Driven
from tests.channel.reports.made_reports import wait_until
from tests.docs.postgres_server import killable_postgres
from tests.source.spark_calls import Checkpoint, Run
from tests.spouts.postgres.shop import LOGICAL, ChangeSpout, Shop, rows


class Keyed:
    """A query that has read row 1 of a table with a sequence."""

    def __init__(self, shop, **more):
        self.shop, self.checkpoint = shop, Checkpoint()
        shop.run(f"CREATE SEQUENCE {shop.name}_ids OWNED BY {shop.name}.id")
        shop.run(self.insert())
        self.options = shop.options(postgres__slot="", postgres__key="id", **more)
        self.run = Run(self.options, self.checkpoint)
        wait_until(lambda: self.run.trigger() or rows(self.checkpoint))

    def insert(self, table=None):
        return f"INSERT INTO {table or self.shop.name} VALUES (nextval('{self.shop.name}_ids'), 'ink')"

    @property
    def ids(self):
        return [id for _, _, _, id, _ in rows(self.checkpoint)]

    def looks(self):
        """Enough looks for one to begin and end."""
        for _ in range(3):
            self.run.trigger()

    def reads(self, ids):
        def has_read():
            self.run.trigger()
            return len(self.ids) >= len(ids)

        wait_until(has_read)
        assert self.ids == ids

    def waits_for_a_writer(self, table=None):
        """Of row 2, into that table, who commits after row 3 is there."""
        with psycopg.connect(self.shop.server.place) as writer:
            writer.execute(self.insert(table))
            self.shop.run(self.insert())
            self.looks()
            assert self.ids == [1]
            writer.commit()
            self.reads([1, 2, 3])


@contextmanager
def prepared(shop):
    """Whatever the test has left open."""
    try:
        yield
    finally:
        with suppress(psycopg.Error):
            shop.run("ROLLBACK PREPARED 'late'")


def test_of_a_prepared_transaction(shop):
    keyed = Keyed(shop)
    with prepared(shop):
        shop.run(f"BEGIN; {keyed.insert()}; PREPARE TRANSACTION 'late'")
        shop.run(keyed.insert())
        keyed.looks()
        assert keyed.ids == [1]
        shop.run("COMMIT PREPARED 'late'")
        keyed.reads([1, 2, 3])


def test_of_a_transaction_that_is_prepared_between_two_looks(shop):
    keyed = Keyed(shop)
    with prepared(shop), psycopg.connect(shop.server.place, autocommit=True) as other:
        shop.run(f"BEGIN; {keyed.insert()}")
        other.execute(keyed.insert())
        keyed.looks()
        shop.run("PREPARE TRANSACTION 'late'")
        keyed.looks()
        assert keyed.ids == [1]
        shop.run("COMMIT PREPARED 'late'")
        keyed.reads([1, 2, 3])


def test_of_a_prepared_transaction_that_outlives_a_killed_server(shop, monkeypatch):
    keyed = Keyed(shop)
    with prepared(shop):
        shop.run(f"BEGIN; {keyed.insert()}; PREPARE TRANSACTION 'late'")
        shop.run(keyed.insert())
        driver = Driven(ChangeSpout.spec(config=keyed.options)).driver
        name = f"public.{shop.name}"
        assert driver.snapshot({name: 2}, {}).heads == {name: (2, 2)}
        shop.restart()
        with pytest.raises(RetryLater):
            driver.snapshot({name: 2}, {})
        for _ in range(3):
            assert driver.snapshot({name: 2}, {}).heads == {name: (2, 2)}
        shop.run("COMMIT PREPARED 'late'")
        wait_until(lambda: driver.snapshot({name: 2}, {}).heads == {name: (2, 4)})


def test_in_a_table_that_inherits(shop):
    keyed = Keyed(shop)
    shop.run(f"CREATE TABLE {shop.name}_child () INHERITS ({shop.name})")
    keyed.waits_for_a_writer(f"{shop.name}_child")


def test_in_a_part_of_a_partitioned_table(shop):
    shop.run(f"DROP TABLE {shop.name}")
    shop.run(f"CREATE TABLE {shop.name} (id int, item text) PARTITION BY RANGE (id)")
    shop.run(f"CREATE TABLE {shop.name}_0 PARTITION OF {shop.name} FOR VALUES FROM (0) TO (10)")
    keyed = Keyed(shop)
    keyed.waits_for_a_writer(f"{shop.name}_0")


def test_in_a_table_that_another_one_has_taken_the_place_of(shop):
    keyed = Keyed(shop)
    shop.run(f"CREATE TABLE {shop.name}_new (LIKE {shop.name} INCLUDING ALL)")
    shop.run(f"INSERT INTO {shop.name}_new SELECT * FROM {shop.name}")
    shop.run(f"ALTER SEQUENCE {shop.name}_ids OWNED BY {shop.name}_new.id")
    shop.run(f"DROP TABLE {shop.name}; ALTER TABLE {shop.name}_new RENAME TO {shop.name}")
    keyed.waits_for_a_writer()


def test_of_a_time_that_is_older_than_the_lag(shop):
    shop.run(f"ALTER TABLE {shop.name} ADD at timestamptz")
    with psycopg.connect(shop.server.place) as writer:
        insert = f"INSERT INTO {shop.name} VALUES (%s, 'ink', now() - interval '1 hour')"
        shop.run(insert, 2)
        writer.execute(insert, (1,))
        options = shop.options(postgres__slot="", postgres__key="at")
        driver = Driven(ChangeSpout.spec(config=options)).driver
        with pytest.raises(RetryLater, match="transactions are writing"):
            driver.snapshot({}, {})
        writer.commit()
    assert driver.snapshot({}, {}).heads


def test_a_standby_does_not_see_writers_and_is_refused():
    with killable_postgres(LOGICAL) as server:
        with psycopg.connect(server.place, autocommit=True) as connection:
            shop = Shop(server, connection, "orders")
        server.stop()
        signal = server._folder / "data" / "standby.signal"
        signal.touch()
        os.chmod(signal, 0o666)
        server.start()
        with pytest.raises(WorldError, match="it is a standby.*primary"):
            Run(shop.options(postgres__slot="", postgres__key="id"), Checkpoint()).trigger()


def test_a_query_that_goes_on_does_not_wait_for_a_lag_to_live(shop):
    """It has nothing to read until then; one that must read all there is waits."""
    shop.insert(1)
    name, options = f"public.{shop.name}", shop.options(postgres__slot="", postgres__key="id", postgres__key__lag="700")
    driver = Driven(ChangeSpout.spec(config=options)).driver
    with pytest.raises(RetryLater, match=r"read when they are 700 seconds old.*spout\.unavailable\.timeout"):
        driver.snapshot({}, {})
    assert driver.snapshot({name: 1}, {}).heads == {name: (1, 1)}
    driver._pystorm_is_frozen = True
    with pytest.raises(RetryLater):
        driver.snapshot({name: 1}, {})


def test_a_query_that_goes_on_does_not_wait_for_a_long_transaction_to_live(shop):
    name, options = f"public.{shop.name}", shop.options(postgres__slot="", postgres__key="id")
    with psycopg.connect(shop.server.place) as writer:
        writer.execute(f"INSERT INTO {shop.name} VALUES (5, 'ink')")
        driver = Driven(ChangeSpout.spec(config=options)).driver
        assert driver.snapshot({name: 3}, {}).heads == {name: (3, 3)}
    assert driver.snapshot({name: 3}, {}).heads[name][0] == 3


def test_times_of_any_year_have_an_offset_and_those_of_the_future_are_told(shop, caplog):
    shop.run(f"ALTER TABLE {shop.name} ADD at timestamptz")
    shop.run(f"INSERT INTO {shop.name} VALUES (1, 'a', now() - interval '1 hour'), (2, 'b', '20000-01-01')")
    options = shop.options(postgres__slot="", postgres__key="at")
    driven = Driven(ChangeSpout.spec(config=options))
    ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
    assert [values[3] for _, values in driven.read(name, start, end)] == [1]
    assert "seconds in the future" in caplog.text
