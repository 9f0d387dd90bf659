"""How often the driver asks a spout, and that answers which are used again lose and repeat nothing."""

import json
from random import Random

import pytest

from pystorm_source import Topology
from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError, TopologyError
from pystorm_source.plan import compile_plan
from pystorm_source.source.driver.poll_interval import PollInterval
from pystorm_source.source.driver.spouts import DriverSpouts
from pystorm_source.source.driver.stream_reader import PystormStreamReader
from pystorm_source.source.request import ReadRequest
from pystorm_source.spouts import FilesSpout, MemorySpout, RateSpout
from tests.source import topologies
from tests.source.spark_calls import ReadAllAvailable

pytest.importorskip("pyspark.sql.streaming.datasource", reason="4.0 and 4.1 have no admission control")

SPARK_ASKS_EVERY = 0.01


class Query:
    """Spark's side of a query: asks the reader, plans what it answers, and goes on from there."""

    def __init__(self, world, topology="Polled", at=None, available_now=False, **options):
        given = world.options(topology, minPartitions=1, streams="all", **options)  # each range by itself
        request = ReadRequest.of({name.lower(): value for name, value in given.items()})
        self.world = world
        self.clock = ManualClock(1000)
        self.reader = PystormStreamReader(
            request, request.rows.output(request.rows.schema()), self.clock, controlled=False
        )
        self.rows = []
        if available_now:
            self.reader.prepareForTriggerAvailableNow()
        self.limit = self.reader.getDefaultReadLimit()
        self.at = at or self.reader.initialOffset()

    def trigger(self, limit=None):
        """Offsets that the next micro-batch reads."""
        end = json.loads(json.dumps(self.reader.latestOffset(self.at, limit or self.limit)))
        if end == self.at:
            return 0
        parts = self.reader.partitions(self.at, end)
        self.at = end
        self.rows += [(part.partition, n) for part in parts for n in range(part.start, part.end)]
        return sum(part.end - part.start for part in parts)

    def idle(self, seconds, every=SPARK_ASKS_EVERY):
        """Nothing but questions of Spark for a while; the offsets that were read."""
        end, read = self.clock.monotonic() + seconds, 0
        while self.clock.monotonic() < end:
            read += self.trigger()
            self.clock.advance(every)
        return read

    @property
    def polls(self):
        return self.reader.reportLatestOffset()["polls"]["numbers"]


def test_an_idle_query_asks_at_the_spouts_interval(world):
    world.put(a=5)
    query = Query(world)
    assert query.idle(60) == 5
    assert 59 <= query.polls <= 1.1 * 60 + 1
    assert query.polls == len((world.folder / "asked.log").read_bytes())


def test_new_rows_are_seen_one_interval_later_at_most(world):
    world.put(a=5)
    query = Query(world)
    query.idle(3.3)
    world.put(a=6, b=2)
    assert query.idle(1 + SPARK_ASKS_EVERY) == 3


def test_a_backlog_is_read_without_a_question(world):
    world.put(a=500, b=500)
    query = Query(world, maxOffsetsPerTrigger=10)
    assert [query.trigger() for _ in range(100)] == [10] * 100
    assert query.polls == 1
    assert sorted(query.rows) == [(part, n) for part in "ab" for n in range(500)]


def test_a_slow_trigger_asks_each_time(world):
    world.put(a=5)
    query = Query(world)
    for _ in range(5):
        query.trigger()
        query.clock.advance(10)
    assert query.polls == 5


def test_a_trigger_of_the_same_interval_asks_each_time_though_it_is_never_quite_on_time():
    interval, random = PollInterval(1.0), Random(7)
    for second in range(1000):
        now = 5.0 + second + random.uniform(-0.04, 0.04)
        assert interval.is_due(now), second
        interval.ask(now)


@pytest.mark.parametrize("seed", range(20))
def test_no_pattern_of_questions_beats_the_interval(seed):
    interval, random, now = PollInterval(1.0), Random(seed), 50.0
    while now < 250:
        if interval.is_due(now):
            interval.ask(now)
        now += random.choice([0.01, 0.05, 0.3, 0.91, 0.95, 2.5])
        assert interval.asked <= (now - 50) + 1.1


def test_a_restart_asks_at_once_and_goes_on_exactly(world):
    world.put(a=5)
    before = Query(world)
    before.trigger()
    world.put(a=9)
    assert before.trigger() == 0
    after = Query(world, at=before.at)
    assert after.trigger() == 4
    assert before.rows + after.rows == [("a", n) for n in range(9)]


def test_available_now_asks_at_once_and_once(world):
    world.put(a=30)
    query = Query(world, available_now=True, maxOffsetsPerTrigger=10)
    world.put(a=40)
    assert [query.trigger() for _ in range(4)] == [10, 10, 10, 0]
    assert query.polls == 1
    assert Query(world, at=query.at, available_now=True).trigger() == 10


def test_once_reads_all_there_is(world):
    world.put(a=30)
    assert Query(world, maxOffsetsPerTrigger=10).trigger(ReadAllAvailable()) == 30


def test_an_offset_that_does_not_come_from_the_last_answer_is_a_question_of_its_own(world):
    world.put(a=5)
    query = Query(world)
    query.trigger()
    world.put(b=3)
    other = Query(world)
    other.trigger()
    query.at = other.at
    assert query.trigger() == 0  # its last answer knew no partition b: it would have vanished
    assert query.polls == 2


def test_answers_of_one_spout_are_no_answers_of_another(world):
    world.put(a=5)
    query = Query(world, "PolledAndNot")
    query.idle(2)
    polls = query.reader.reportLatestOffset()["polls"]
    assert polls["numbers"] <= 3
    assert polls["others"] >= 199


@pytest.mark.parametrize("seed", range(10))
def test_partitions_that_come_and_go_are_read_exactly_once(world, seed):
    """A spout with notes, which speak of partitions that leave the offset: at any interval, cut anywhere."""
    random = Random(seed)
    sizes = {}
    query = Query(world, "Noting", maxOffsetsPerTrigger=random.choice([1, 3, 7]), spout__poll__seconds=1)
    for step in range(120):
        if step % 4 == 0 and len(sizes) < 12:
            name = f"p{len(sizes):02d}{random.choice(['', '_done'])}"
            sizes[name] = random.randint(1, 9)
        for name in [name for name in sizes if not name.endswith("_done")]:
            sizes[name] += random.choice([0, 0, 1])
        world.put(**sizes)
        query.trigger()
        query.clock.advance(random.choice([0, 0.01, 0.4, 1.5]))
        if random.random() < 0.05:
            rows, clock = query.rows, query.clock
            query = Query(world, "Noting", at=query.at, maxOffsetsPerTrigger=3, spout__poll__seconds=1)
            query.rows, query.clock.now = rows, clock.now
    for _ in range(200):
        query.trigger()
        query.clock.advance(0.5)
    assert sorted(query.rows) == sorted((name, n) for name, size in sizes.items() for n in range(size))


def test_partitions_leave_with_the_answer_that_says_so_not_later(world):
    """A spout that retires what it has noted as read would find it again as new, were it to leave before the note."""
    world.put(a=4)
    query = Query(world, "Ledger", maxOffsetsPerTrigger=2)
    for _ in range(40):
        query.trigger()
        query.clock.advance(0.3)
    assert query.rows == [("a", n) for n in range(4)]


def seconds_of(**given):
    topology = type("Asked", (Topology,), {"config": given.pop("config", {}), "s": given.pop("spout")})
    return DriverSpouts(compile_plan(topology)).poll_seconds("s")


def test_the_interval_is_the_spouts_the_querys_or_the_components():
    asked = topologies.AskedSpout
    assert seconds_of(spout=asked.spec()) == 1.0
    assert seconds_of(spout=asked.spec(), config={"spout.poll.seconds": 5}) == 5.0
    own = asked.spec(config={"spout.poll.seconds": "0.25"})
    assert seconds_of(spout=own, config={"spout.poll.seconds": 5}) == 0.25
    for local in (MemorySpout.spec(fields=["n long"]), RateSpout.spec(), FilesSpout.spec(path="/")):
        assert seconds_of(spout=local) == 0.0


def test_the_heads_of_a_journal_are_counted_whatever_the_interval(world):
    options = world.options("Ticks", spout__poll__seconds=60, journal__path=str(world.folder))
    request = ReadRequest.of({name.lower(): value for name, value in options.items()})
    assert DriverSpouts(request.plan).poll_seconds("ticks") == 0.0


@pytest.mark.parametrize("seconds", [-1, True, "1", None, float("inf"), float("nan")])
def test_an_interval_that_is_none_is_refused(seconds):
    odd = type("Odd", (topologies.AskedSpout,), {"poll_seconds": seconds})
    with pytest.raises(TopologyError, match="poll_seconds of 's' of Asked must be a number of at least 0"):
        seconds_of(spout=odd.spec())


def test_an_option_below_zero_is_refused():
    with pytest.raises(OptionError, match=r"spout\.poll\.seconds.*Given: -1"):
        seconds_of(spout=topologies.AskedSpout.spec(), config={"spout.poll.seconds": -1})
