"""A spout whose source is busy when the driver asks: the query lives, the others go on, and nothing is lost."""

import json

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.errors import TupleFailed
from pystorm_source.errors.failure_block import FailureBlock
from tests.source.driver.test_polling import Query

pytest.importorskip("pyspark.sql.streaming.datasource", reason="4.0 and 4.1 have no admission control")

PARTS = ("partitions", "earliest", "latest")


def busy(world, **methods):
    """The methods of the spout that are refused from now on."""
    (world.folder / "busy.json").write_text(json.dumps(methods))


def calls(world, method):
    path = world.folder / "calls.log"
    return path.read_text().split().count(method) if path.exists() else 0


def part_of(query, spout="numbers"):
    """The offsets that were read, by partition, of one of two spouts that read the same folder."""
    return query.at["offsets"].get(spout, {})


@pytest.mark.parametrize("method", PARTS)
def test_the_last_heads_are_kept_while_others_go_on(world, method):
    world.put(a=5)
    query = Query(world, "BusyAndNot")
    assert query.trigger() == 10
    busy(world, **{method: 5})
    world.put(a=9)
    assert query.idle(30, every=0.1) == 4
    assert part_of(query) == {"a": 5}
    assert part_of(query, "others") == {"a": 9}
    report = query.reader.reportLatestOffset()
    assert 28_000 <= report["unavailableMillis"]["numbers"] <= 30_000
    assert report["unavailable"] == {"numbers": f"{method}() raised RetryLater: again after 5 s: 429 Too Many Requests"}
    before = calls(world, method)
    query.idle(30, every=0.1)
    assert calls(world, method) - before <= 30 / 5 + 1
    busy(world)
    assert query.idle(7) == 4
    assert part_of(query) == {"a": 9}
    assert "unavailable" not in query.reader.reportLatestOffset()


@pytest.mark.parametrize("method", PARTS)
def test_before_the_first_answer_there_is_nothing_of_it(world, method):
    world.put(a=5)
    busy(world, **{method: 2})
    query = Query(world, "BusyAndNot")
    assert query.idle(10) == 5
    assert part_of(query) == {}
    busy(world)
    assert query.idle(4) == 5
    assert part_of(query) == {"a": 5}


def test_after_a_restart_nothing_is_lost_of_what_is_not_known(world):
    world.put(a=5, b=3)
    before = Query(world, "Busy")
    before.trigger()
    busy(world, latest=2)
    world.put(a=9)
    after = Query(world, "Busy", at=before.at)
    assert after.idle(10) == 0
    busy(world)
    assert after.idle(4) == 4
    assert sorted(before.rows + after.rows) == [("a", n) for n in range(9)] + [("b", n) for n in range(3)]


@pytest.mark.parametrize("starting", ["latest", '{"numbers": {"a": 2}, "others": {"a": 2}}'])
def test_where_a_query_starts_is_decided_when_all_are_known(world, starting):
    world.put(a=5)
    busy(world, latest=2)
    query = Query(world, "BusyAndNot", startingOffsets=starting)
    assert query.idle(10) == 0
    assert query.at == query.reader.initialOffset()
    busy(world)
    begin = 5 if starting == "latest" else 2
    assert query.idle(4) == 2 * (5 - begin)
    world.put(a=7)
    query.idle(2)
    assert sorted(query.rows) == sorted([("a", n) for n in range(begin, 7)] * 2)


def until_it_ends(query, seconds):
    """The error, and after how many seconds it came."""
    began = query.clock.monotonic()
    with pytest.raises(TupleFailed) as raised:
        query.idle(seconds, every=0.25)
    return raised.value, query.clock.monotonic() - began


@pytest.mark.parametrize(("asks_for", "timeout", "seconds"), [(5, "1m", 60), (7000, "10m", 600), (0, "30s", 30)])
def test_what_is_busy_for_too_long_ends_the_query_with_one_block(world, asks_for, timeout, seconds):
    world.put(a=5)
    query = Query(world, "Busy", spout__unavailable__timeout=timeout)
    query.trigger()
    query.clock.advance(2)
    busy(world, latest=asks_for)
    before = calls(world, "latest")
    error, passed = until_it_ends(query, 2 * seconds)
    assert seconds <= passed <= seconds + 3
    block = FailureBlock.found_in(str(error))
    assert error.code == block.code == "PYSTORM_SPOUT_UNAVAILABLE"
    assert block.what.startswith("component 'numbers', on the driver: latest() raised RetryLater: again after")
    attempts, _, _, passed, _ = block.place.split()
    assert int(attempts) == calls(world, "latest") - before
    assert seconds <= int(passed) <= seconds + 3
    assert f"spout.unavailable.timeout. Given: '{timeout}'" in block.remedy


def test_the_default_is_ten_minutes(world):
    busy(world, partitions=50)
    error, passed = until_it_ends(Query(world, "Busy"), 1000)
    assert 600 <= passed <= 603
    assert "Given: '10m'" in str(error)


def test_exceptions_that_are_worth_a_retry_are_backed_off(world):
    world.put(a=5)
    query = Query(world, "Busy", topology__retry__on='{"OSError": "retry"}')
    query.trigger()
    busy(world, latest="ConnectionError")
    before = calls(world, "latest")
    world.put(a=6)
    query.idle(100, every=0.1)
    assert 6 <= calls(world, "latest") - before <= 10  # after 0.5, 1, 2, 4, 8, 16 s, then every 30
    assert "ConnectionError: 429" in query.reader.reportLatestOffset()["unavailable"]["numbers"]
    busy(world)
    assert query.idle(37, every=0.1) == 1


@pytest.mark.parametrize(("raised", "rules"), [("ConnectionError", "{}"), ("Hopeless", '{"Exception": "retry"}')])
def test_other_exceptions_end_the_query_at_once(world, raised, rules):
    world.put(a=5)
    query = Query(world, "Busy", topology__retry__on=rules)
    query.trigger()
    query.clock.advance(1)
    busy(world, latest=raised)
    error, passed = until_it_ends(query, 10)
    assert passed == 0
    assert error.code == "PYSTORM_TUPLE_FAILED"


def test_a_commit_that_is_refused_comes_with_the_next_one(world):
    world.put(a=5)
    query = Query(world, "Busy")
    offsets = []
    for head in (5, 7, 9, 11):
        world.put(a=head)
        query.clock.advance(5)
        assert query.trigger()
        offsets.append(query.at)
        busy(world, **({"commit": 8} if head == 7 else {}))
        query.reader.commit(offsets[-1])
    assert world.committed == [{"a": 5}, {"a": 11}]  # not 7; not 9, as it asked for 8 s


def test_refused_commits_show_and_end_the_query(world):
    world.put(a=5)
    query = Query(world, "Busy", spout__unavailable__timeout="20s")
    query.trigger()
    busy(world, commit=1)
    query.reader.commit(query.at)
    query.trigger()
    assert query.reader.reportLatestOffset()["unavailable"]["numbers"].startswith("commit() raised RetryLater")
    query.clock.advance(10)
    query.reader.commit(query.at)
    query.clock.advance(11)
    with pytest.raises(TupleFailed, match=r"PYSTORM_SPOUT_UNAVAILABLE\][^']*'numbers', on the driver: commit\(\)"):
        query.reader.commit(query.at)


class Recovers(ManualClock):
    """The source is back when so much time has passed."""

    def __init__(self, world, at):
        super().__init__(1000)
        self.world, self.at = world, at

    def advance(self, seconds):
        super().advance(seconds)
        if self.now >= self.at:
            busy(self.world)


@pytest.mark.parametrize("others", [0, 4])
def test_available_now_waits_for_the_source(world, others, monkeypatch):
    monkeypatch.setattr("tests.source.driver.test_polling.ManualClock", lambda now: Recovers(world, now + 25))
    world.put(a=5)
    busy(world, partitions=3)
    query = Query(world, "BusyAndNot" if others else "Busy", available_now=True, maxOffsetsPerTrigger=100)
    sizes = []
    while size := query.trigger():
        sizes.append(size)
    assert sum(sizes) == (10 if others else 5)
    assert part_of(query) == {"a": 5}
    assert 25 <= query.clock.monotonic() - 1000 <= 32
