"""Spouts and bolts as users write and unit-test them: constructors, identity, logging."""

import io
import logging
from itertools import pairwise

import pytest

from pystorm_source import Bolt, PartitionedSpout, Spout, Tuple
from pystorm_source.api.component import Component


class Lines(PartitionedSpout):
    outputs = ["line string"]


class Words(Bolt):
    outputs = ["word string"]


@pytest.mark.parametrize("cls", [Lines, Words, Spout])
def test_streamparses_constructor_arguments_are_taken_and_ignored(cls):
    class Calls(cls):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    assert cls(input_stream=io.BytesIO(), output_stream=io.BytesIO(), rdb_signal=None, serializer="json")
    assert Calls(io.BytesIO(), io.BytesIO(), "SIGUSR1", "msgpack")


def test_identity_is_none_before_the_start_and_there_after_it():
    bolt = Words()
    for name in ("topology_name", "component_name", "task_id", "debug", "storm_conf", "context", "logger"):
        assert getattr(bolt, name) is None
    seen = []
    bolt.initialize = lambda conf, context: seen.append((conf, context))
    conf = {"topology.name": "T", "topology.debug": True}
    context = {"componentid": "words", "taskid": 7}
    bolt._start(conf, context)
    assert (bolt.topology_name, bolt.component_name, bolt.task_id, bolt.debug) == ("T", "words", 7, True)
    assert bolt.logger.name == "pystorm.component.words"
    assert seen == [(conf, context)]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        (None, logging.INFO),
        ("trace", logging.DEBUG),
        ("debug", logging.DEBUG),
        ("info", logging.INFO),
        ("warn", logging.WARNING),
        ("warning", logging.WARNING),
        ("error", logging.ERROR),
        ("critical", logging.CRITICAL),
    ],
)
def test_log_levels(level, expected, caplog):
    with caplog.at_level(logging.DEBUG, logger="pystorm"):
        Words().log("hello", level)
    assert [(record.levelno, record.message, record.name) for record in caplog.records] == [
        (expected, "hello", "pystorm.component.Words")
    ]


def test_percent_signs_in_messages_are_no_format(caplog):
    with caplog.at_level(logging.INFO, logger="pystorm"):
        Words().log("100 % of %s")
    assert caplog.messages == ["100 % of %s"]


def test_an_unknown_level_is_refused():
    with pytest.raises(ValueError, match="trace, debug.*Given: 'loud'"):
        Words().log("x", "loud")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Bolt().process(Tuple()), "process"),
        (lambda: Spout().next_tuple(), "next_tuple"),
        (lambda: PartitionedSpout().next_tuple(), "next_tuple"),
        (lambda: PartitionedSpout().next_batch(), "next_batch"),
        (lambda: PartitionedSpout().partitions(), "partitions"),
        (lambda: PartitionedSpout().latest("p"), "latest"),
        (lambda: PartitionedSpout().open("p", 0, 1), "open"),
    ],
)
def test_what_must_be_defined_says_so(call, name):
    with pytest.raises(NotImplementedError, match=f"must define.*{name}"):
        call()


def test_hooks_that_may_stay_undefined_do_nothing():
    spout = Spout()
    assert [spout.ack(1), spout.fail(1), spout.activate(), spout.deactivate(), spout.cleanup()] == [None] * 5
    assert Lines().close() is None
    assert Lines().commit({"p": 1}) is None


def test_ticks_are_told_apart():
    assert Bolt.is_tick(Tuple(component="__system", stream="__tick", values=(1,)))
    assert not Bolt.is_tick(Tuple(component="__system", stream="default"))
    assert not Bolt.is_tick(Tuple(component="spout", stream="__tick"))


def test_a_component_alone_has_no_spec():
    with pytest.raises(TypeError, match="subclass one of them. Given:"):
        Component.spec()


@pytest.mark.parametrize(
    ("start", "end", "parts"), [(0, 10, 3), (5, 6, 4), (0, 0, 3), (7, 7, 1), (0, 100, 1), (3, 1000003, 7), (0, 5, 5)]
)
def test_even_cuts(start, end, parts):
    cuts = Lines().split("p", start, end, parts)
    edges = [start, *cuts, end]
    assert len(cuts) <= parts - 1
    assert sorted(set(edges)) == sorted(set(cuts) | {start, end})
    if end > start:
        sizes = [b - a for a, b in pairwise(edges)]
        assert min(sizes) >= 1
        assert max(sizes) - min(sizes) <= 1
        assert len(sizes) == min(parts, end - start)
    else:
        assert cuts == []


def test_a_snapshot_is_made_of_the_three_answers():
    class Two(PartitionedSpout):
        def partitions(self):
            return ["a", "b"]

        def earliest(self, partition):
            return {"a": 3, "b": 0}[partition]

        def latest(self, partition):
            return {"a": 9, "b": 2}[partition]

    snapshot = Two().snapshot({"a": 5}, {"note": 1})
    assert snapshot.heads == {"a": (3, 9), "b": (0, 2)}
    assert snapshot.memo == {"note": 1}
    assert snapshot.retired == frozenset()
    assert Two().align("a", 3, 7) == 7
