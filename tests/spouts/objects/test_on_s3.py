"""ObjectsSpout against a real S3 server, moto's: what listing costs, what comes late, what the service answers."""

import uuid

import pytest

from cython_core.executors.executor import ComponentFailed
from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import WorldError
from pystorm_source.spouts.objects import segment
from pystorm_source.testing import ManualClock
from testbed.s3_server import KEY, SECRET, s3_server
from tests.spouts.drive import Query
from tests.spouts.objects.lake import Bucket, Slow, driven, ndjson, parquet


@pytest.fixture(scope="module")
def server():
    with s3_server() as found:
        yield found


@pytest.fixture
def lake(server):
    server.refused.clear()
    return Bucket(server, uuid.uuid4().hex)


def query_of(lake, seed=0, **more):
    journal = lake.path.replace("/in", "/journal")
    return Query(driven(lake, journal=journal, **more), seed)


def test_the_list_lies_in_the_bucket_and_each_row_arrives_once_over_restarts(lake):
    query = query_of(lake)
    query.still = False
    for n in range(0, 60, 10):
        lake.put(f"day={n // 30}/{n:03d}.json", ndjson(range(n, n + 10)))
        query.step(some=True)
        query.restart()
    query.drain()
    assert sorted(query.rows) == [(n,) for n in range(60)]


def test_new_names_are_found_behind_the_greatest_one_by_one_request(lake):
    query = query_of(lake, objects__incremental="true")
    for n in range(1, 8):
        lake.put(f"{n:03d}", ndjson([n]))
    query.drain()
    lake.server.pages.clear()
    lake.put("100", ndjson([100]))
    snapshot = query.driven.driver.snapshot(query.known, query.state)
    assert sum(end for _, end in snapshot.heads.values()) > sum(query.known.values())
    assert lake.server.pages == ["in/007"]
    query.drain()
    lake.put("000", ndjson([0]))
    query.drain()
    assert sorted(query.rows) == [(n,) for n in [*range(1, 8), 100]], "a smaller name is never looked for"


@pytest.mark.parametrize("incremental", ["auto", "false"])
def test_a_smaller_name_that_comes_late_is_found_by_a_sweep(lake, incremental):
    clock = ManualClock()
    query = query_of(lake, clock=clock, objects__incremental=incremental)
    query.still = False
    lake.put("b/2", ndjson([2]))
    query.drain()
    for name, n in (("b/1", 1), ("a/3", 3), ("c/4", 4)):
        lake.put(name, ndjson([n]))
    clock.advance(3601)
    query.drain()
    assert sorted(query.rows) == [(n,) for n in range(1, 5)]


def test_a_sweep_rests_in_proportion_to_its_time(lake):
    query = query_of(lake, clock=Slow())
    query.still = False
    lake.put("a", ndjson([1]))
    query.drain()
    lake.server.pages.clear()
    for _ in range(50):
        query.driven.driver.snapshot(query.known, query.state)
    tails = lake.server.pages.count("in/a")
    assert tails == 50
    assert 1 <= len(lake.server.pages) - tails <= 25


@pytest.mark.parametrize("refused", ["503 Slow Down", "429 Too Many Requests"])
def test_a_busy_store_is_asked_again_later(lake, refused):
    query = query_of(lake)
    query.still = False
    lake.put("a", ndjson([1]))
    lake.server.refused["list"] = refused
    with pytest.raises(RetryLater):
        query.plan()
    del lake.server.refused["list"]
    ranges = query.plan()
    reader = query.driven.instance("task")
    ((name, start, end),) = ranges
    reader.open(name, start, end)
    lake.server.refused["get"] = refused
    for _ in range(2):
        with pytest.raises(RetryLater):
            reader.next_batch()
    del lake.server.refused["get"]
    assert reader.next_batch().to_pylist() == [{"id": 1}]
    assert reader.next_batch() is None


def test_no_bucket_and_no_rights_are_errors_with_a_remedy(lake):
    lake.put("a", ndjson([1]))
    which = driven(lake)
    ((name, (start, end)),) = which.driver.snapshot({}, {}).heads.items()
    lake.server.refused = {"list": "403 Forbidden", "get": "403 Forbidden"}
    with pytest.raises(WorldError, match="right to list and read") as raised:
        driven(lake).driver.snapshot({}, {})
    assert KEY not in str(raised.value) and SECRET not in str(raised.value)
    with pytest.raises(ComponentFailed) as failed:
        driven(lake, files__malformed="skip", failOnDataLoss=False).read(name, start, end)
    assert "right to list and read" in str(failed.value.__cause__)
    lake.server.refused = {}
    lake.path = f"s3://{uuid.uuid4().hex}/in"
    with pytest.raises(WorldError, match="no such bucket"):
        driven(lake).driver.snapshot({}, {})


def test_a_large_parquet_object_is_read_by_ranges(lake, monkeypatch):
    monkeypatch.setattr(segment, "PART", 40_000)
    lake.put("a", parquet(range(30_000), 3000))
    which = driven(lake, format="parquet")
    heads = which.driver.snapshot({}, {}).heads
    assert sum(len(segment.parts_named(name)) for name in heads) > 3
    rows = [values for name, (start, end) in heads.items() for _, values in which.read(name, start, end)]
    assert sorted(rows) == [(n,) for n in range(30_000)]
