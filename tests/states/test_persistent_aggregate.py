"""States in the ``foreachBatch`` of real queries, which come again from their checkpoint."""

from operator import add

import pytest

from pystorm_source import (
    NonTransactionalMapState,
    OpaqueMapState,
    Topology,
    TransactionalMapState,
    persistent_aggregate,
    read_stream,
)
from pystorm_source.errors import ArgumentTypeError, WorldError
from pystorm_source.spouts import MemorySpout
from pystorm_source.states import MemoryStore

ROWS = [(n, "ann" if n % 2 else "bob", float(n)) for n in range(9)]
TOTALS = {"ann": 16.0, "bob": 20.0}
LAST = {"ann": 7.0, "bob": 14.0}


class Orders(Topology):
    orders = MemorySpout.spec(fields=["id long", "customer string", "amount double"], rows=ROWS)


class Query:
    """A query of three micro-batches with a checkpoint of its own."""

    def __init__(self, spark, folder):
        self.spark = spark
        self.checkpoint = folder / "checkpoint"

    def run(self, write):
        orders = read_stream(self.spark, Orders, maxOffsetsPerTrigger=3)
        query = orders.writeStream.foreachBatch(write).option("checkpointLocation", str(self.checkpoint))
        query.trigger(availableNow=True).start().awaitTermination(90)

    def forget_commit(self):
        """As if the last micro-batch had been planned and not finished."""
        for path in (self.checkpoint / "commits").glob("*2*"):
            path.unlink()


@pytest.fixture
def query(spark, tmp_path):
    return Query(spark, tmp_path)


@pytest.mark.campaign
@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "twice", "on_executors"),
    [(TransactionalMapState, 0, False), (OpaqueMapState, 0, True), (NonTransactionalMapState, 1, True)],
)
def test_a_micro_batch_that_comes_again_counts_once(query, postgres, name, kind, twice, on_executors):
    from pyspark.sql import functions as F

    def write():  # as a new driver makes it
        state = kind(postgres.url, name)
        amount = F.sum("amount")
        return persistent_aggregate(state, key="customer", value=amount, combine=add, on_executors=on_executors)

    query.run(write())
    assert dict(zip(TOTALS, kind(postgres.url, name).multi_get(TOTALS), strict=True)) == TOTALS
    query.forget_commit()
    query.run(write())
    now = kind(postgres.url, name).multi_get(TOTALS)
    assert now == [total + twice * LAST[key] for key, total in TOTALS.items()]


@pytest.mark.spark
def test_rows_one_by_one_keys_of_several_columns_and_values_of_several(spark, url, name):
    from pyspark.sql import functions as F

    rows = spark.createDataFrame(ROWS, "id long, customer string, amount double").withColumn("odd", F.expr("id % 2"))
    state = OpaqueMapState(url, name)
    seen = persistent_aggregate(state, key=["customer", "odd"], value="id", combine=lambda ids, n: [*ids, n], zero=list)
    seen(rows.coalesce(1), 0)
    assert state.multi_get([("ann", 1), ("bob", 0)]) == [[1, 3, 5, 7], [0, 2, 4, 6, 8]]

    both = F.struct(F.sum("amount").alias("sum"), F.count("*").alias("n"))
    means = OpaqueMapState(url, f"{name}_means")
    write = persistent_aggregate(means, key="customer", value=both, combine=lambda a, b: {k: a[k] + b[k] for k in a})
    write(rows, 0)
    write(rows, 1)
    assert means.get("ann") == {"sum": 32.0, "n": 8}


@pytest.mark.spark
@pytest.mark.parametrize("on_executors", [False, True])
def test_keys_may_be_times_and_null_and_values_that_are_null_are_passed_over(spark, postgres, name, on_executors):
    rows = spark.sql("SELECT timestamp'2026-03-01 12:00:00 UTC' AS at, 1L AS n UNION ALL SELECT NULL, 2L "
                     "UNION ALL SELECT timestamp'2026-03-02 12:00:00 UTC', NULL")  # fmt: skip
    state = TransactionalMapState(postgres.url, name)
    persistent_aggregate(state, key="at", value="n", combine=add, on_executors=on_executors)(rows, 0)
    keys = ['{"time":"2026-03-01T12:00:00Z"}', '{"time":"2026-03-02T12:00:00Z"}', "null"]
    entries = state.store.multi_get(keys)
    assert [entry and entry.value for entry in entries] == ["1", None, "2"]


@pytest.mark.spark
def test_a_store_that_is_away_fails_the_query_and_the_next_run_goes_on(query, postgres, name):
    from pyspark.sql import functions as F

    state = OpaqueMapState(postgres.url, name)
    write = persistent_aggregate(state, key="customer", value=F.sum("amount"), combine=add)

    def killing(batch, batch_id):
        if batch_id == 1:
            postgres.kill()
        write(batch, batch_id)

    with pytest.raises(Exception, match="PYSTORM_STORE_UNREACHABLE"):
        query.run(killing)
    postgres.start()
    query.run(write)
    assert state.multi_get(TOTALS) == list(TOTALS.values())


def test_what_is_wrong_is_refused_before_a_query_runs():
    def made(state=None, key="a", value="b"):
        return persistent_aggregate(state or OpaqueMapState(MemoryStore()), key=key, value=value, combine=add)

    made()
    with pytest.raises(ArgumentTypeError, match="state is a MapState"):
        made(state=MemoryStore())
    for key in ([], [1]):
        with pytest.raises(ArgumentTypeError, match="key names one column or several"):
            made(key=key)
    with pytest.raises(ArgumentTypeError, match="value is the name of a column, or an aggregate"):
        made(value=1)
    with pytest.raises(WorldError, match="Connection refused"):
        made(state=OpaqueMapState("redis://127.0.0.1:9/0", "totals"))
