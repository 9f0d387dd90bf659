"""Rows that a component returns instead of emitting them: an error in a test, advice in the log of a Spark task."""

import logging

import pytest

from pystorm_source import AsyncBolt, BatchingBolt, Bolt, Spout
from pystorm_source.errors import TupleFailed
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.testing import run_topology
from tests.testing.topologies import scripted
from tests.worker.running import Numbers, rows, topology, worker_of


class Returns(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        return [1]


class GivesGenerator(Returns):
    def process(self, tup):
        return (n for n in range(3))


class AtTicks(Returns):
    def process(self, tup):
        pass

    def process_tick(self, tup):
        return {"n": 1}


class InBatches(BatchingBolt):
    outputs = ["n long"]

    def process_batch(self, key, tups):
        return [(1,)]


class Async(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        return [1]


@pytest.mark.parametrize(
    ("bolt", "method", "what"),
    [
        (Returns, "process", "a list"),
        (GivesGenerator, "process", "a generator"),
        (AtTicks, "process_tick", "a dict"),
        (InBatches, "process_batch", "a list"),
        (Async, "process", "a list"),
    ],
)
def test_rows_that_a_bolt_returns_are_refused(bolt, method, what):
    made = scripted(["the cow"], bolts=lambda words: {"mine": bolt.spec(inputs=[words])})
    with pytest.raises(TupleFailed, match=rf"'mine'.*{method}\(\) returned {what} and emitted nothing") as caught:
        run_topology(made)
    assert caught.value.__cause__.code == "PYSTORM_ROWS_RETURNED"
    assert "self.emit([...])" in str(caught.value)


def test_the_method_that_returned_rows_is_the_line_of_the_failure():
    made = scripted(["the cow"], bolts=lambda words: {"mine": Returns.spec(inputs=[words])})
    with pytest.raises(TupleFailed) as caught:
        run_topology(made)
    block = FailureBlock.of(caught.value)
    first = Returns.process.__code__.co_firstlineno
    assert block.line == f'File "{__file__}", line {first}, in process: def process(self, tup):'
    assert block.frames == ""  # there are none: the exception is not said twice


def test_rows_that_a_spout_returns_are_refused():
    class Lists(Spout):
        outputs = ["n long"]

        def next_tuple(self):
            return [1]

    with pytest.raises(TupleFailed, match=r"next_tuple\(\) returned a list and emitted nothing"):
        run_topology(topology(lists=Lists.spec()))


class TellsTasks(Returns):
    """As some of streamparse's do."""

    def process(self, tup):
        return self.emit([1], need_task_ids=True)


class SaysEnough(Returns):
    def process(self, tup):
        self.emit([1])
        return [tup]


class HasNone(Returns):
    def process(self, tup):
        return []


class SaysTrue(Returns):
    def process(self, tup):
        return True


class Stores(Returns):
    """A sink's."""

    outputs = None

    def process(self, tup):
        return [1]


@pytest.mark.parametrize("bolt", [TellsTasks, SaysEnough, HasNone, SaysTrue, Stores])
def test_other_answers_mean_nothing(bolt):
    run_topology(scripted(["the cow"], bolts=lambda words: {"mine": bolt.spec(inputs=[words])}))


def test_a_task_of_spark_says_it_once(caplog):
    numbers = Numbers.spec()
    worker = worker_of(topology(numbers=numbers, mine=Returns.spec(inputs=[numbers])), "mine")
    with caplog.at_level(logging.WARNING, "pystorm.worker"):
        assert [rows(worker.run("numbers", "p", start, start + 3)) for start in (0, 3)] == [[], []]
    (said,) = caplog.messages
    assert said == (
        "component 'mine', task 2: process() returned a list and emitted nothing: rows leave by emit alone, "
        "self.emit([...]) for each of them. Given: [1]"
    )
    worker.stop()
