"""What an ObjectsSpout finds: late names, errors while it lists, runs of one look, stores with another order."""

import os
import uuid
from collections import Counter

import pytest

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.spouts.objects import listing
from pystorm_source.spouts.objects.options import ObjectsOptions
from testbed.s3_server import s3_server
from tests.spouts.drive import Query
from tests.spouts.objects.lake import Bucket, Folder, Slow, driven, ndjson


@pytest.fixture(scope="module")
def server():
    with s3_server() as found:
        yield found


@pytest.fixture
def bucket(server):
    server.refused.clear()
    return Bucket(server, uuid.uuid4().hex)


@pytest.fixture
def lake(tmp_path):
    return Folder(tmp_path / "lake")


@pytest.fixture
def as_a_store(monkeypatch):
    """A folder is listed as a store is: behind the greatest name first."""
    monkeypatch.setattr(ObjectsOptions, "is_local", property(lambda options: False))


def query_of(lake, **more):
    journal = lake.path.rpartition("/")[0] + "/journal"
    query = Query(driven(lake, journal=journal, **more))
    query.still = False
    return query


@pytest.mark.parametrize("names", [["0", *"123456"], ["z", *"abcdef"]], ids=["tail", "sweep"])
def test_what_was_found_before_an_error_is_found_again(bucket, names, monkeypatch):
    monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "3")
    monkeypatch.setattr(listing, "_PAGE", 3)
    query = query_of(bucket)
    bucket.put(names[0], ndjson([0]))
    query.drain()
    query.restart()
    for n, name in enumerate(names[1:], 1):
        bucket.put(name, ndjson([n]))
    bucket.server.refused["page"] = "503 Slow Down"
    with pytest.raises(RetryLater):
        query.plan()
    bucket.server.refused.clear()
    query.drain()
    assert sorted(query.rows) == [(n,) for n in range(7)]


def test_runs_of_one_look_find_all_late_names(lake, monkeypatch):
    monkeypatch.setattr(listing, "_PAGE", 2)
    monkeypatch.setattr(listing, "SWEEP_SECONDS", 0.0)  # as of a store that is slow, or large
    query = query_of(lake)
    for begin in (0, 20):
        for n in range(begin, begin + 20):
            lake.put(f"{n:02d}", ndjson([n]))
        query.restart()
        query.step()
        assert sorted(query.rows) == [(n,) for n in range(begin + 20)]


def test_a_run_that_reads_all_there_is_lists_all_names_once(bucket):
    query = query_of(bucket, clock=Slow())
    bucket.put("b", ndjson([1]))
    query.drain()
    bucket.put("a", ndjson([2]))
    driver = query.driven.driver
    driver._pystorm_is_frozen = True
    query.step()
    assert sorted(query.rows) == [(1,), (2,)]
    bucket.server.pages.clear()
    driver.snapshot(query.known, query.state)
    assert bucket.server.pages == ["in/b"]


def test_an_object_that_is_forgotten_is_not_read_again_after_a_restart(lake, as_a_store):
    query = query_of(lake, objects__max__age="1h")
    for n, minutes in ((0, 0), (1, 30), (9, 75)):
        lake.put(f"{n}", ndjson([n]))
        os.utime(f"{lake.path}/{n}", (1e9 + 60 * minutes, 1e9 + 60 * minutes))
        query.restart()
        query.drain()
    assert sorted(query.rows) == [(0,), (1,), (9,)]


@pytest.mark.parametrize("ignores", [False, True])
def test_a_store_with_an_order_of_its_own_doubles_nothing(lake, as_a_store, ignores):
    """Such as ADLS with folders, which lists ``a/`` before ``a-``; or one that does not know ``start-after``."""
    query = query_of(lake)
    found = query.driven.driver._discovery._found()
    store = found._store

    class Ordered:
        def list(self, offset=None, chunk_size=1000):
            def key(path):
                return path.replace("/", "\0")

            metas = sorted((meta for page in store.list() for meta in page), key=lambda meta: key(meta["path"]))
            yield [meta for meta in metas if ignores or offset is None or key(meta["path"]) > key(offset)]

    found._store = Ordered()
    for n, name in enumerate(("a/1", "a-1/1", "a!x")):
        lake.put(name, ndjson([n]))
    for _ in range(3):
        query.step()
    assert Counter(query.rows) == {(0,): 1, (1,): 1, (2,): 1}
