"""Dead letters through Spark: rows of their own, rows of a bolt, the error of a query."""

import datetime

import pytest
from pyspark.errors import StreamingQueryException

from pystorm_source import read_stream
from pystorm_source.errors import OptionError
from pystorm_source.errors.failure_block import FailureBlock
from tests.source.queries import Query
from tests.source.topologies import Picky

pytestmark = pytest.mark.spark

STREAM = {"topology__dead__letter": "stream", "topology__max__spout__retries": 1}


def stream(spark, options):
    return spark.readStream.format("pystorm").options(**options).load()


@pytest.fixture
def query(tmp_path):
    return Query(tmp_path)


@pytest.mark.timeout(180)  # the first query of the session
def test_they_are_rows_of_their_own_beside_the_others(spark, world, query):
    world.put(a=9)
    frame = stream(spark, world.options("Picky", streams="all", **STREAM))
    query.run(frame.select("_stream", "n", "component", "reason", "attempts", "partition", "offset", "values", "time"))
    assert [row[1] for row in query.rows if row[0] == "default"] == [0, 1, 2, 4, 5, 6, 7]
    dead = [row for row in query.rows if row[0] == "__dead_letter"]
    assert [row[2:8] for row in dead] == [("picky", f"ValueError: not {n}", 2, "a", n, f'["a", {n}]') for n in (3, 8)]
    now = datetime.datetime.now()
    assert all(now - datetime.timedelta(minutes=10) < row[8] <= now for row in dead)


def test_picked_alone_by_their_full_name_and_the_others_picked_without_them(spark, world, query, tmp_path):
    world.put(a=5)
    query.run(stream(spark, world.options("Picky", stream="numbers.__dead_letter", **STREAM)).select("offset"))
    assert query.rows == [(3,)]
    others = Query(tmp_path / "others")
    others.run(stream(spark, world.options("Picky", stream="picky", **STREAM)))
    assert others.rows == [(0,), (1,), (2,), (4,)]


def test_a_bolt_takes_them(spark, world, query):
    world.put(a=5)
    query.run(stream(spark, world.options("Buried", stream="tombs")))
    assert query.rows == [('["a", 3] 1 ValueError: not 3',)]


@pytest.mark.campaign
def test_the_query_fails_and_names_the_tuple_unless_something_else_is_asked_for(spark, world, query):
    world.put(a=5)
    with pytest.raises(StreamingQueryException) as failed:
        query.run(stream(spark, world.options("Picky")))
    block = FailureBlock.found_in(str(failed.value))
    assert block.what == "component 'picky', task 2: process() raised ValueError: not 3"
    assert block.place.startswith("tuple ('a', 3) of numbers.default; offset 3; 4 attempts; in partition 'a' [0, 5)")
    assert block.remedy.startswith("no retry is left (topology.max.spout.retries=3): allow for more")
    dropping = world.options("Picky", topology__dead__letter="drop")
    assert query.run(stream(spark, dropping)) == [[(0,), (1,), (2,), (4,)]]


def test_rows_that_nobody_would_read_are_refused_before_the_query_starts(spark, world):
    options = world.options("Picky", **STREAM)
    del options["topology"]
    with pytest.raises(OptionError, match=r"the dead letters numbers.__dead_letter"):
        read_stream(spark, Picky, **options)
