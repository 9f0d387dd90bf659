"""Spark 4.0 and 4.1: `latestOffset()` has no start and no limit; `partitions(x, x)` restores the position."""

import inspect
import json
import logging

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.source.driver.stream_reader import PystormStreamReader
from pystorm_source.source.offsets.offsets import sealed
from pystorm_source.source.request import ReadRequest
from tests.source.spark_calls import Checkpoint, Run

pytestmark = pytest.mark.spark40


def numbers(part, start, end):
    return [(part, n) for n in range(start, end)]


def flat(checkpoint):
    return sorted(row for batch in checkpoint.rows for row in batch)


def test_signature_serves_both():
    """Spark 4.2 counts the parameters; 4.0 and 4.1 call without any."""
    parameters = inspect.signature(PystormStreamReader.latestOffset).parameters
    assert list(parameters) == ["self", "start", "limit"]
    assert all(each.default is None for name, each in parameters.items() if name != "self")


def test_limit_is_emulated_across_restarts(world, caplog):
    world.put(a=50, b=(10, 30))
    options = world.options(maxOffsetsPerTrigger=20)
    checkpoint = Checkpoint()
    run = Run(options, checkpoint, admission=False)
    run.trigger()
    run.trigger()
    Run(options, checkpoint, admission=False).drain()
    assert [len(rows) for rows in checkpoint.rows] == [20, 20, 20, 10]
    assert flat(checkpoint) == numbers("a", 0, 50) + numbers("b", 10, 30)
    assert not Run(options, checkpoint, admission=False).trigger()
    assert sum("does not ask a source for a limit" in message for message in caplog.messages) == 3  # once a run


def test_replay(world):
    world.put(a=10)
    options = world.options(maxOffsetsPerTrigger=4)
    checkpoint = Checkpoint()
    Run(options, checkpoint, admission=False).trigger()
    checkpoint.finished = 0
    Run(options, checkpoint, admission=False).drain()
    assert [len(rows) for rows in checkpoint.rows] == [4, 4, 4, 2]
    assert flat(checkpoint) == sorted(numbers("a", 0, 10) + numbers("a", 0, 4))


def test_starting_offsets(world):
    world.put(a=5)
    options = world.options(startingOffsets="latest")
    checkpoint = Checkpoint()
    run = Run(options, checkpoint, admission=False)
    run.drain()
    world.put(a=7)
    checkpoint.finished = 0
    Run(options, checkpoint, admission=False).drain()
    assert flat(checkpoint) == numbers("a", 5, 7)


# --- the controller


class Controlled:
    """A run with its controller, which plans micro-batches that take so many seconds. ``at``: the last offset."""

    def __init__(self, world, at=None, **options):
        request = ReadRequest.of(
            {name.lower(): value for name, value in world.options(controlled=True, **options).items()}
        )
        self.clock = ManualClock(1000.25)
        self.reader = PystormStreamReader(
            request, request.rows.output(request.rows.schema()), self.clock, controlled=True
        )
        self.at = at or self.reader.initialOffset()
        if at is not None:
            self.reader.partitions(at, at)

    def plan(self, seconds=1.0):
        """Offsets that the next micro-batch reads."""
        end = json.loads(json.dumps(self.reader.latestOffset()))
        size = sum(each.end - each.start for each in self.reader.partitions(self.at, end))
        self.at = end
        self.clock.advance(seconds)
        return size


@pytest.fixture
def endless(world):
    world.put(a=10**9)
    return world


def test_an_overloaded_query_is_admitted_less_from_its_second_micro_batch_on(endless, caplog):
    caplog.set_level(logging.INFO, "pystorm.source")
    run = Controlled(endless)
    run.plan(seconds=100)
    endless.put(a=10**10)
    assert 0 < run.plan(seconds=1) < 10**9 / 20
    assert 0 < run.plan() < 10**9 / 20
    said = [message for message in caplog.messages if "micro-batches read at most" in message]
    assert len(said) == 1
    assert "(no report)" in said[0]


def test_whoever_sets_the_first_rate_bounds_the_first_micro_batch(endless):
    # An unset target begins at 2 s.
    assert Controlled(endless, backpressure__initialRate=100).plan() <= 200


def test_a_run_of_one_micro_batch_leaves_no_rest_behind_twice(endless):
    """Trigger.AvailableNow over the checkpoint of a query without end."""
    endless.put(a=10**5)
    known = Controlled(endless)
    known.plan()
    known.at = sealed(known.at | {"admission": {"numbers": {"common": 5000, "slots": 2}}})
    endless.put(a=10**6)
    once = Controlled(endless, known.at)
    held_back = 9 * 10**5 - once.plan()
    assert held_back > 8 * 10**5
    assert Controlled(endless, once.at).plan() == held_back
