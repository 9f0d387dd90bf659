"""The list below journal.path that offsets of an ObjectsSpout point into: gone, changed, in the way, or busy."""

import shutil
import uuid

import pytest

from pystorm_source.errors import CheckpointError, WorldError
from pystorm_source.spouts.objects import store
from testbed.s3_server import s3_server
from tests.spouts.drive import Query
from tests.spouts.objects.lake import Bucket, Folder, driven, ndjson


@pytest.fixture
def lake(tmp_path):
    return Folder(tmp_path / "lake")


@pytest.fixture
def query(lake, tmp_path):
    """One that has read ten objects, each by a look."""
    query = Query(driven(lake, journal=tmp_path / "journal"))
    query.still = False
    for n in range(10):
        lake.put(f"{n}", ndjson([n]))
        query.drain()
    return query


def segments(tmp_path):
    (folder,) = (tmp_path / "journal").iterdir()
    return sorted(folder.iterdir())


def goes_on_with(query, lake, **options):
    query.driven = driven(lake, **options)
    return query


def test_a_list_that_is_gone_is_not_begun_again_under_old_offsets(query, lake, tmp_path):
    shutil.rmtree(tmp_path / "journal")
    query.restart()
    lake.put("10", ndjson([10]))
    with pytest.raises(CheckpointError, match="set journal.path to the folder that this query has used"):
        query.plan()
    with pytest.raises(CheckpointError, match="new checkpointLocation"):
        query.plan()  # nothing was put there meanwhile


@pytest.mark.parametrize("which", [0, 4, -1])
def test_a_list_of_which_a_part_is_gone_is_not_used(query, tmp_path, which):
    segments(tmp_path)[which].unlink()
    query.restart()
    with pytest.raises(CheckpointError, match="restore"):
        query.plan()


def test_another_journal_path_is_refused(query, lake, tmp_path):
    with pytest.raises(CheckpointError, match="elsewhere"):
        goes_on_with(query, lake, journal=tmp_path / "elsewhere").plan()


def test_a_journal_path_that_is_taken_away_is_missed(query, lake):
    ranges = list(query.known.items())
    without = goes_on_with(query, lake)
    with pytest.raises(CheckpointError, match="set the option"):
        without.plan()
    with pytest.raises(CheckpointError, match="set the option"):  # Spark plans the last micro-batch again
        without.driven.driver.split(ranges[0][0], 0, ranges[0][1], 2)


def test_a_journal_path_that_comes_later_is_refused(lake, tmp_path):
    query = Query(driven(lake))
    lake.put("a", ndjson([1]))
    query.drain()
    with pytest.raises(CheckpointError, match="began without"):
        goes_on_with(query, lake, journal=tmp_path / "journal").plan()


def test_what_another_process_has_added_is_no_reason_to_refuse(query, lake):
    other = query.driven.instance("driver")
    other.snapshot(query.known, query.state)
    lake.put("10", ndjson([10]))
    query.drain()
    assert other.snapshot(query.known, query.state) == query.driven.driver.snapshot(query.known, query.state)


def test_a_list_below_the_prefix_is_no_data(lake):
    query = Query(driven(lake, ["line string"], "lines", journal=lake.path))
    query.still = False
    lake.put("a", b"hello\n")
    for _ in range(4):
        query.step()
    assert query.rows == [("hello",)]


@pytest.mark.parametrize("method", ["align", "split"])
def test_a_store_that_is_busy_while_the_driver_plans_is_waited_for(method, monkeypatch):
    """The engine does not call these again."""
    with s3_server() as server:
        lake = Bucket(server, uuid.uuid4().hex)
        query = Query(driven(lake, journal=lake.path.replace("/in", "/journal")))
        for n in range(80):
            lake.put(f"{n:03d}", ndjson([n]))
            if n in (39, 79):
                snapshot = query.driven.driver.snapshot({}, query.state)
                query.state = snapshot.state
        query.restart()
        driver = query.driven.driver
        name, (_, end) = sorted(driver.snapshot({}, query.state).heads.items())[0]
        server.refused["get"], server.refusals["get"] = "503 Slow Down", 2 * store._RETRIES["max_retries"]
        assert driver.align(name, 0, end // 2) if method == "align" else driver.split(name, 0, end, 3)
        assert not server.refused
        monkeypatch.setitem(store._LONG_RETRIES, "max_retries", 1)
        server.refused["get"] = "503 Slow Down"
        query.restart()
        server.refused["list"] = "503 Slow Down"
        with pytest.raises(WorldError, match="503"):
            getattr(query.driven.driver, method)(name, 0, end, *[3][: method == "split"])
