"""A ReliableSpout emits a tuple ``1 + max_fails`` times; what it gives up is a dead letter."""

import json

import pytest

from pystorm_source import Bolt, ReliableSpout, Topology
from pystorm_source.errors import TupleFailed
from pystorm_source.testing import run_topology


class Words(ReliableSpout):
    outputs = ["word string", "n long"]
    left = ()

    def initialize(self, conf, context):
        self.left = [("good", 1), ("bad", 2), ("fine", 3)]

    def next_tuple(self):
        if self.left:
            word, n = self.left.pop(0)
            self.emit([word, n], tup_id=n)


class Fails(Bolt):
    outputs = ["word string"]

    def process(self, tup):
        if tup.values.word == "bad":
            self.fail(tup)
        else:
            self.emit([tup.values.word])


class Raises(Bolt):
    outputs = ["word string"]
    exit_on_exception = False

    def process(self, tup):
        if tup.values.word == "bad":
            raise ValueError("no such word")
        self.emit([tup.values.word])


class Tombs(Bolt):
    outputs = ["values string"]

    def process(self, tup):
        self.emit([tup.values.values])


def played(scheduler, policy=None, bolt=Fails, spout=Words, tombs=False):
    words = spout.spec()
    body = {"words": words, "picky": bolt.spec(inputs=[words])}
    if tombs:
        body["tombs"] = Tombs.spec(inputs=[words["__dead_letter"]])
    config = {} if policy is None else {"topology.dead.letter": policy}
    return run_topology(type("Made", (Topology,), body), config, scheduler=scheduler, errors="collect")


def test_the_task_fails_unless_something_else_is_asked_for(scheduler):
    result = played(scheduler)
    [error] = result.errors
    assert isinstance(error, TupleFailed)
    assert str(error).startswith(
        "[PYSTORM_TUPLE_FAILED] component 'picky', task 2: the tuple was failed; tuple ('bad', 2) of words.default; "
        "message id 2; 4 attempts; no retry is left (max_fails=3): "
    )


def test_dropped_it_is_counted_and_warned_of_once(scheduler, caplog):
    result = played(scheduler, "drop")
    assert not result.errors
    assert sorted(result.rows("picky")) == [("fine",), ("good",)]
    assert (result.retries["words"], result.dead_letters["words"], result.dropped["words"]) == (3, 1, 1)
    assert len([record for record in caplog.records if "topology.dead.letter is drop" in record.getMessage()]) == 1


@pytest.mark.parametrize("max_fails", [0, 1])
def test_as_a_row(scheduler, max_fails):
    result = played(scheduler, "stream", spout=type("W", (Words,), {"max_fails": max_fails}))
    assert result.emitted["words"] == 3 + max_fails + 1
    [row] = result.rows("words", "__dead_letter")
    assert row[2:5] == (1 + max_fails, None, None)
    assert json.loads(row[5]) == ["bad", 2]
    assert result.dropped["words"] == 0


def test_a_bolt_takes_the_rows(scheduler):
    assert played(scheduler, "stream", tombs=True).rows("tombs") == [('["bad", 2]',)]


def test_a_spout_does_not_emit_there_itself(scheduler):
    class Forges(Words):
        def next_tuple(self):
            self.emit([None] * 7, tup_id=1, stream="__dead_letter")

    [error] = played(scheduler, "stream", spout=Forges).errors
    assert "Unknown stream ID: Forges declares the streams 'default'" in str(error)


def test_an_exception_of_fail_itself_is_the_spouts(scheduler):
    class Stumbles(Words):
        def fail(self, tup_id):
            raise KeyError("gone")

    [error] = played(scheduler, "drop", spout=Stumbles).errors
    assert "component 'words', task 1: fail() raised KeyError: 'gone'" in str(error)
