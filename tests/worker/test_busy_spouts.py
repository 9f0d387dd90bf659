"""A spout in a task whose source is busy: the range goes on behind the pause, and no row is lost or doubled."""

from itertools import pairwise

import pyarrow as pa
import pytest

from pystorm_source import Bolt, CursorSpout, PartitionedSpout, RetryLater, Spout, Topology
from pystorm_source.clock import ManualClock, SystemClock
from pystorm_source.errors import TopologyError, TupleFailed
from pystorm_source.testing import run_topology

SCHEDULERS = pytest.mark.parametrize("scheduler", ["inline", "threads"])


class Source:
    """Refuses each of its calls so many times, with a wait of so many seconds."""

    def __init__(self, clock, times=2, seconds=30):
        self.clock, self.times, self.seconds = clock, times, seconds
        self.refused, self.calls = {}, []

    def ask(self, call):
        self.calls.append((call, self.clock.monotonic()))
        self.refused[call] = self.refused.get(call, 0) + 1
        if self.refused[call] <= self.times:
            raise RetryLater(self.seconds, "429")


class Rows(PartitionedSpout):
    """Six rows; ``refuses`` names the places at which its source is busy."""

    outputs = ["n long"]
    source: Source
    refuses = ()

    def ask(self, place):
        if place in self.refuses:
            self.source.ask(place)

    def partitions(self):
        self.ask("partitions")
        return ["p"]

    def latest(self, partition):
        self.ask("latest")
        return 6

    def commit(self, offsets):
        self.ask("commit")

    def open(self, partition, start, end):
        self.ask("open")
        self.at, self.end = start, end

    def next_tuple(self):
        self.ask("before")
        if self.at == self.end:
            return False
        if self.at == 3:
            self.ask("middle")
        at, self.at = self.at, self.at + 1
        self.emit([at], tup_id=at)
        if at in (3, 5):
            self.ask(f"behind {at}")
        return True


class InBatches(Rows):
    def next_batch(self):
        self.ask("before")
        if self.at == self.end:
            return None
        if self.at == 2:
            self.ask("middle")
        at, self.at = self.at, self.at + 2
        return pa.RecordBatch.from_pydict({"n": [at, at + 1]})

    next_tuple = PartitionedSpout.next_tuple


class Doubles(Bolt):
    outputs = ["twice long"]

    def process(self, tup):
        self.emit([2 * tup.values.n])


def run(spout, scheduler="inline", refuses=(), source=None, config=None):
    """The result, and the source."""
    clock = ManualClock()
    source = source or Source(clock)
    source.clock = clock
    spout = type(spout.__name__, (spout,), {"refuses": refuses, "source": source})
    rows = spout.spec(name="rows")
    made = type("Made", (Topology,), {"rows": rows, "doubles": Doubles.spec(inputs=[rows])})
    return run_topology(made, {"topology.scheduler": scheduler, **(config or {})}, clock=clock), source


PLACES = ("partitions", "latest", "commit", "open", "before", "middle", "behind 3", "behind 5")


@SCHEDULERS
@pytest.mark.parametrize("place", PLACES)
def test_rows_come_once_whatever_call_is_refused(place, scheduler):
    result, source = run(Rows, scheduler, [place])
    assert sorted(result.rows("doubles")) == [(2 * n,) for n in range(6)]
    assert result.acked["rows"] == 6
    assert result.retries["rows"] == 0
    times = [at for call, at in source.calls if call == place]
    if place != "commit" and not place.startswith("behind"):  # these calls are not made again
        assert times[1] - times[0] >= 30
        assert times[2] - times[1] >= 30
        assert times[2] - times[0] <= 2 * 30 * 1.2 + 1


@SCHEDULERS
@pytest.mark.parametrize("places", [["open", "middle"], ["before"], ["middle"]])
def test_batches_come_once_too(places, scheduler):
    result, _ = run(InBatches, scheduler, places)
    assert sorted(result.rows("doubles")) == [(2 * n,) for n in range(6)]


@SCHEDULERS
def test_all_calls_refused_at_once(scheduler):
    result, _ = run(Rows, scheduler, PLACES)
    assert sorted(result.rows("doubles")) == [(2 * n,) for n in range(6)]


@SCHEDULERS
def test_the_time_counts_as_waiting_for_the_source(scheduler):
    result, _ = run(Rows, scheduler, ["middle"], Source(None, times=40, seconds=0.001))
    stalls = result._counts.report["components"]["rows"]["stall_seconds"]
    assert stalls["source_unavailable"] > 0


class Journals(Rows):
    """Notes itself that its source is busy, as a journal around a spout does."""

    refuses = ("middle",)

    def next_tuple(self):
        if self._pystorm_outage.rests():
            return None
        try:
            answer = super().next_tuple()
        except RetryLater as error:
            self._pystorm_outage.note("next_tuple", error)
            return None
        self._pystorm_outage.end()
        return answer


@SCHEDULERS
def test_so_does_the_time_of_an_outage_behind_a_journal(scheduler):
    spout = type("Journals", (Journals,), {"source": Source(SystemClock(), times=3)})
    result = run_topology(type("Made", (Topology,), {"rows": spout.spec()}), {"topology.scheduler": scheduler})
    assert len(result.rows("rows")) == 6
    stalls = result._counts.report["components"]["rows"]["stall_seconds"]
    assert stalls["source_unavailable"] > 0
    assert stalls["nothing_to_emit"] == 0


@SCHEDULERS
@pytest.mark.parametrize(("place", "method"), [("middle", "next_tuple"), ("open", "open")])
def test_what_is_busy_for_too_long_ends_the_run_with_one_block(place, method, scheduler):
    with pytest.raises(TupleFailed) as raised:
        run(Rows, scheduler, [place], Source(None, times=10**9), {"spout.unavailable.timeout": "5m"})
    assert raised.value.code == "PYSTORM_SPOUT_UNAVAILABLE"
    assert raised.value.what == f"component 'rows', task 1: {method}() raised RetryLater: again after 30 s: 429"
    assert raised.value.place.startswith("10 attempts in 300 s") or "attempts in 30" in raised.value.place
    assert "or raise spout.unavailable.timeout. Given: '5m'" in raised.value.remedy


def test_a_source_that_is_busy_and_names_no_pause_gets_some_rest():
    source = Source(None, times=10**9, seconds=0)
    with pytest.raises(TupleFailed, match="PYSTORM_SPOUT_UNAVAILABLE"):
        run(Rows, "inline", ["middle"], source)
    times = [at for call, at in source.calls if call == "middle"]
    pauses = [late - early for early, late in pairwise(times)]
    assert pauses[0] == 0
    for number, pause in enumerate(pauses[1:7]):
        assert 0.01 * 2**number <= pause <= 0.012 * 2**number + 0.002
    assert len(times) <= 600 / 0.5 + 8  # ten minutes


def test_an_answer_in_between_begins_the_time_anew():
    class Often(Source):
        def ask(self, call):
            self.calls.append((call, self.clock.monotonic()))
            if len(self.calls) % 4:
                raise RetryLater(50)

    result, _ = run(Rows, "inline", ["before"], Often(None), {"spout.unavailable.timeout": "4m"})
    assert len(result.rows("doubles")) == 6


@SCHEDULERS
def test_a_generator_that_it_has_ended_is_refused(scheduler):
    class Generates(Rows):
        def open(self, partition, start, end):
            super().open(partition, start, end)
            self.pages = self.read()

        def read(self):
            for at in range(self.at, self.end):
                self.ask(f"page {at}")
                yield at

        def next_tuple(self):
            for at in self.pages:
                self.emit([at], tup_id=at)
                return True
            return False

    with pytest.raises(TopologyError, match=r"must not raise RetryLater inside of a generator.*Generates\.read\(\)"):
        run(Generates, scheduler, ["page 3"])


def test_a_with_block_is_no_such_generator():
    from contextlib import contextmanager

    @contextmanager
    def block():
        yield

    class Blocks(Rows):
        def ask(self, place):
            with block():
                super().ask(place)

    result, _ = run(Blocks, "inline", ["middle"])
    assert len(result.rows("doubles")) == 6


@SCHEDULERS
def test_other_spouts_go_on_meanwhile(scheduler):
    clock = ManualClock()
    source = Source(clock, times=3)
    at = []

    class Slow(Rows):
        refuses = ("middle",)

    Slow.source = source

    class Notes(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            at.append((tup.component, clock.monotonic()))
            self.emit([tup.values.n])

    class Both(Topology):
        config = {"topology.scheduler": scheduler, "topology.spouts.independent": True}
        slow = Slow.spec()
        quick = Rows.spec()
        notes = Notes.spec(inputs=[slow, quick])

    result = run_topology(Both, clock=clock, together=True)
    assert len(result.rows("notes")) == 12
    assert max(when for component, when in at if component == "quick") < 30
    assert max(when for component, when in at if component == "slow") >= 90


@SCHEDULERS
def test_a_spout_without_offsets_is_asked_again_too(scheduler):
    class Queue(Spout):
        outputs = ["n long"]
        left = 4

        def next_tuple(self):
            self.source.ask("next_tuple")
            if not self.left:
                return False
            self.left -= 1
            self.emit([self.left])
            return True

    Queue.source = Source(None, times=3)
    result, source = run(Queue, scheduler, (), Queue.source)
    assert sorted(result.rows("doubles")) == [(0,), (2,), (4,), (6,)]
    assert source.calls[3][1] >= 90


@SCHEDULERS
def test_a_partition_that_stays_busy_ends_the_run_though_another_one_answers(scheduler):
    class Pages(CursorSpout):
        outputs = ["n long"]
        names = ("a", "b")

        def partitions(self):
            return self.names

        def read(self, cursor, limit):
            if self.partition == self.names[0]:
                self.source.ask("read")
            return [], cursor

    with pytest.raises(
        TupleFailed, match=r"PYSTORM_SPOUT_UNAVAILABLE.* read\(\) raised RetryLater.* attempts in 600 s"
    ):
        run(Pages, scheduler, source=Source(None, times=10**9))


@SCHEDULERS
def test_the_others_are_read_when_it_answers(scheduler):
    class Pages(CursorSpout):
        outputs = ["n long"]

        def partitions(self):
            return ["a", "b", "c"]

        def read(self, cursor, limit):
            self.source.ask(f"read {self.partition} {cursor}")
            return ([[1]], 1) if cursor is None else ([], 1)

    result, _ = run(Pages, scheduler, source=Source(None, times=2))
    assert len(result.rows("doubles")) == 3
