"""What a bolt in a process of its own raises has the same effect, and reads the same, as in the Spark task's."""

import os
import signal
import threading

import pytest

from pystorm_source import BatchingBolt, Bolt, Grouping, PartitionedSpout, Topology
from pystorm_source.clock import SystemClock
from pystorm_source.errors import TupleFailed
from pystorm_source.exceptions import Hopeless, RetryLater
from pystorm_source.testing import run_topology
from tests.both_schedulers import SCHEDULERS

STREAM = {"topology.dead.letter": "stream", "topology.max.spout.retries": 2}
BY_NUMBER = Grouping.fields("n")


class Numbers(PartitionedSpout):
    outputs = ["n long"]

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return 40

    def open(self, partition, start, end):
        self.at, self.end = start, end

    def next_tuple(self):
        if self.at == self.end:
            return False
        self.emit([self.at], self.at)
        self.at += 1
        return None


def both(cls, scheduler, clock=None, config=STREAM, **settings):
    """Results without and with two processes."""

    def topology(processes):
        class OfNumbers(Topology):
            spout = Numbers.spec()
            placed = cls.spec(inputs={spout: BY_NUMBER}, par=2, processes=processes)

        return OfNumbers

    return [
        run_topology(topology(count), scheduler=scheduler, clock=clock, config=config, **settings) for count in (0, 2)
    ]


def errors_of(result):
    return sorted((str(error), repr(error.__cause__)) for error in result.errors)


def dead_of(result):
    """Without the time."""
    return sorted((row[1], row[2], row[4], row[5]) for row in result.rows("spout", "__dead_letter"))


def assert_alike(results):
    without, placed = results
    assert sorted(placed.rows("placed")) == sorted(without.rows("placed")) != []
    assert dead_of(placed) == dead_of(without)
    assert errors_of(placed) == errors_of(without)
    for count in ("emitted", "executed", "acked", "failed", "retries", "dead_letters"):
        assert getattr(placed, count) == getattr(without, count), count


class Passes(Bolt):
    """Passes on every number; ``sevenths`` says what becomes of those that 7 divides."""

    outputs = ["n long"]

    def process(self, tup):
        if tup.values.n % 7 == 0:
            self.sevenths(tup)
        self.emit([tup.values.n])


class GoesOn(Passes):
    exit_on_exception = False

    def sevenths(self, tup):
        raise KeyError(tup.values.n)


class IsHopeless(Passes):
    def sevenths(self, tup):
        raise Hopeless(f"no {tup.values.n}")


class Later(Passes):
    def initialize(self, conf, context):
        self.seen = set()

    def sevenths(self, tup):
        if tup.values.n not in self.seen:
            self.seen.add(tup.values.n)
            raise RetryLater(0.5)


class Fails(Passes):
    auto_ack = False

    def process(self, tup):
        if tup.values.n % 7 == 0:
            self.fail(tup, error=ValueError("by hand"))
        else:
            self.emit([tup.values.n])
            self.ack(tup)


class Groups(BatchingBolt):
    outputs = ["n long"]
    exit_on_exception = False
    tuples_between_batches = 4

    def group_key(self, tup):
        return tup.values.n % 2

    def process_batch(self, key, tups):
        for tup in tups:
            self.emit([tup.values.n])
        if any(tup.values.n == 20 for tup in tups):
            raise ValueError("twenty")


TWICE = pytest.mark.xfail(
    strict=True, reason="what the run survives is reported twice: by raise_exception(), by process()"
)
FAILING = [GoesOn, IsHopeless, Later, Fails]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("cls", FAILING)
def test_failures_retries_and_dead_letters_are_the_same(cls, scheduler):
    assert_alike(both(cls, scheduler))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("cls", [IsHopeless, Later])
def test_forked_too(cls):
    assert_alike(both(cls, "inline", SystemClock()))


class Says(Passes):
    def sevenths(self, tup):
        self.raise_exception(ValueError("said"), tup)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_what_is_only_said_is_heard_once(scheduler):
    without, placed = both(Says, scheduler)
    assert len(placed.errors) == len(without.errors) == 6
    assert sorted(placed.rows("placed")) == sorted(without.rows("placed")) == [(n,) for n in range(40)]


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_batch_that_raises_fails_all_of_it(scheduler):
    without, placed = both(Groups, scheduler)
    assert sorted(placed.rows("placed")) == sorted(without.rows("placed")) != []
    assert {row[4] for row in placed.rows("spout", "__dead_letter")} >= {20}


class Raises(Passes):
    def sevenths(self, tup):
        raise TimeoutError(f"slow {tup.values.n}")


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("verdict", ["never", "retry"])
def test_a_table_of_retries_holds_there(verdict, scheduler):
    assert_alike(both(Raises, scheduler, config=STREAM | {"topology.retry.on": {"TimeoutError": verdict}}))


class Once(Passes):
    def sevenths(self, tup):
        if tup.values.n == 21:
            raise KeyError("twenty-one")


@pytest.mark.parametrize("clock", [None, SystemClock()], ids=["pumped", "forked"])
@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_an_exception_that_ends_the_task_names_component_task_tuple_and_line(scheduler, clock):
    without, placed = both(Once, scheduler, clock, errors="collect")
    assert errors_of(placed)[-1] == errors_of(without)[-1]
    cause = placed.errors[-1].__cause__
    assert "sevenths" in "".join([*getattr(cause, "__notes__", []), *_frames_of(cause)])


def _frames_of(error):
    frame = error.__traceback__
    while frame is not None:
        yield frame.tb_frame.f_code.co_name
        frame = frame.tb_next


class NotReady(Passes):
    def initialize(self, conf, context):
        raise OSError("no model")


@pytest.mark.parametrize("clock", [None, SystemClock()], ids=["pumped", "forked"])
def test_an_exception_of_initialize_names_it(clock):
    for result in both(NotReady, "inline", clock, errors="collect"):
        assert isinstance(result.errors[0], TupleFailed)
        assert "component 'placed', task 3: initialize() raised OSError: no model" in str(result.errors[0])


class Leaves(Passes):
    def initialize(self, conf, context):
        os._exit(3)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_process_that_ends_in_initialize_is_named_with_its_status(scheduler):
    class OfNumbers(Topology):
        spout = Numbers.spec()
        placed = Leaves.spec(inputs={spout: BY_NUMBER}, processes=2)

    with pytest.raises(TupleFailed, match=r"component 'placed', task \d.*the process of component 'placed'.*status 3"):
        run_topology(OfNumbers, scheduler=scheduler, clock=SystemClock())


class IsKilled(Passes):
    def sevenths(self, tup):
        if tup.values.n == 21:
            os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_process_that_is_killed_is_named_with_its_tuples_and_a_hint(scheduler):
    class OfNumbers(Topology):
        spout = Numbers.spec()
        placed = IsKilled.spec(inputs={spout: BY_NUMBER}, processes=1)

    with pytest.raises(TupleFailed, match=r"component 'placed', task 2.*memory has run out.*tuples? w\w+ there"):
        run_topology(OfNumbers, scheduler=scheduler, clock=SystemClock())


class Locks(Bolt):
    outputs = ["n long", "lock"]

    def process(self, tup):
        self.emit([tup.values.n, threading.Lock()])


class Takes(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit([tup.values.n])


@pytest.mark.parametrize("clock", [None, SystemClock()], ids=["pumped", "forked"])
@pytest.mark.parametrize("placed", ["first", "second"])
def test_a_value_that_cannot_be_pickled_is_named(placed, clock):
    class OfNumbers(Topology):
        spout = Numbers.spec()
        first = Locks.spec(inputs=[spout], processes=int(placed == "first"))
        second = Takes.spec(inputs=[first], processes=int(placed == "second"))

    with pytest.raises(TupleFailed, match=r"component '\w+', task \d.*refuses a value of type lock.*processes="):
        run_topology(OfNumbers, clock=clock, check_types=False)
