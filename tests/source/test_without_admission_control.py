"""Spark 4.0 and 4.1: `latestOffset()` has no start and no limit; `partitions(x, x)` restores the position."""

import inspect

import pytest

from pystorm_source.source.stream_reader import PystormStreamReader
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
    assert sum("has no admission control" in message for message in caplog.messages) == 3  # once a run


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
