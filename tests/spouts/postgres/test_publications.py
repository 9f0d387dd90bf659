"""Which tables and columns are read of a publication, and which are refused."""

import pytest

from pystorm_source.errors import SchemaError, WorldError
from pystorm_source.spouts import PostgresSpout
from pystorm_source.testing.driven import Driven
from tests.source.spark_calls import Checkpoint, Run
from tests.spouts.postgres.shop import ChangeSpout, begun, changes


def test_tables_that_are_named_are_read_and_no_others_of_a_publication(shop):
    other = shop.another("customers")
    shop.run(f"CREATE PUBLICATION {shop.name} FOR TABLE {shop.name}, {other.name}")
    shop.insert(1)
    other.insert(77)
    run, checkpoint, _ = begun(shop)
    shop.insert(2)
    other.insert(78)
    run.drain()
    assert [id for _, id, _ in changes(checkpoint)] == [1, 2]


@pytest.mark.parametrize(("identity", "refused"), [("DEFAULT", True), ("NOTHING", True), ("FULL", False)], ids=str)
def test_a_table_whose_updates_the_server_would_refuse_is_not_published(shop, identity, refused):
    shop.run(f"ALTER TABLE {shop.name} DROP CONSTRAINT {shop.name}_pkey, REPLICA IDENTITY {identity}")
    shop.insert(1)
    run = Run(shop.options(), Checkpoint())
    if refused:
        with pytest.raises(WorldError, match=r"table orders_\d+ has no primary key.*REPLICA IDENTITY FULL"):
            run.trigger()
    else:
        run.trigger()
    shop.run(f"UPDATE {shop.name} SET item = 'pen'")


def test_a_partitioned_table_is_published_and_read_as_one(shop):
    shop.run(f"DROP TABLE {shop.name}")
    shop.run(f"CREATE TABLE {shop.name} (id int PRIMARY KEY, item text) PARTITION BY RANGE (id)")
    shop.run(f"CREATE TABLE {shop.name}_0 PARTITION OF {shop.name} FOR VALUES FROM (0) TO (10)")
    shop.insert(1)
    run, checkpoint, _ = begun(shop)
    shop.insert(2)
    run.drain()
    assert [id for _, id, _ in changes(checkpoint)] == [1, 2]


def test_rows_that_row_security_hides_from_the_user_are_an_error_of_the_snapshot(shop):
    shop.insert(1, 2, 3)
    shop.run(f"CREATE PUBLICATION {shop.name} FOR TABLE {shop.name}")
    shop.run("CREATE ROLE guarded LOGIN REPLICATION")
    shop.run("GRANT CREATE ON DATABASE postgres TO guarded")
    shop.run(f"GRANT SELECT ON {shop.name} TO guarded")
    shop.run(f"ALTER TABLE {shop.name} ENABLE ROW LEVEL SECURITY")
    shop.run(f"CREATE POLICY low ON {shop.name} USING (id < 2)")
    try:
        with pytest.raises(WorldError, match="row-level security.*BYPASSRLS"):
            Run(shop.options(postgres__user="guarded"), Checkpoint()).trigger()
    finally:
        shop.tidy()
        shop.run("DROP OWNED BY guarded")
        shop.run("DROP ROLE guarded")


def test_a_column_that_no_table_has_is_refused(shop):
    shop.insert(1)
    for how in ({}, {"postgres.slot": "", "postgres.key": "id"}):
        driver = Driven(PostgresSpout.spec(config=shop.options() | how, fields=["op string", "itm string"])).driver
        with pytest.raises(SchemaError, match=r"no table .* has a column 'itm'.*columns id, item"):
            driver.snapshot({}, {})


def test_names_are_those_of_sql_by_slot_and_by_key(shop):
    for table in ('public."Orders"', '"Orders"'):
        shop.run('CREATE TABLE "Orders" (id int PRIMARY KEY, item text)')
        shop.run("INSERT INTO \"Orders\" VALUES (1, 'ink')")
        try:
            for how in ({}, {"postgres.slot": "", "postgres.key": "id"}):
                options = shop.options(postgres__tables=table) | how
                assert 'public."Orders"' in Driven(ChangeSpout.spec(config=options)).driver.snapshot({}, {}).heads
                folded = options | {"postgres.tables": "public.Orders"}
                with pytest.raises(WorldError, match="no table public.orders"):
                    Driven(ChangeSpout.spec(config=folded)).driver.snapshot({}, {})
        finally:
            shop.tidy()
            shop.run('DROP TABLE "Orders"')
