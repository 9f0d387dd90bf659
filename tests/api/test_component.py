"""Spouts and bolts as users write and unit-test them: constructors, identity, logging."""

import io
import logging
import os
from fractions import Fraction
from itertools import pairwise

import pyarrow as pa
import pytest

from pystorm_source import (
    Bolt,
    JavaBolt,
    JavaSpout,
    PartitionedSpout,
    ShellBolt,
    ShellSpout,
    Spout,
    Topology,
    Tuple,
)
from pystorm_source.api.component import Component
from pystorm_source.errors import TopologyError
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan, Worker


class Lines(PartitionedSpout):
    outputs = ["line string"]


class Words(Bolt):
    outputs = ["word string"]


def started(conf):
    bolt = Words()
    bolt._start(conf, {"componentid": "words", "taskid": 7})
    return bolt


@pytest.mark.parametrize("cls", [Lines, Words, Spout])
def test_streamparses_constructor_arguments_are_taken_and_ignored(cls):
    class Calls(cls):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)

    assert cls(input_stream=io.BytesIO(), output_stream=io.BytesIO(), rdb_signal=None, serializer="msgpack")
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


def test_an_unknown_level_counts_as_info(caplog):
    with caplog.at_level(logging.INFO, logger="pystorm"):
        Words().log(5, "loud")
    assert [(record.levelname, record.message) for record in caplog.records] == [("INFO", "5")]


def test_log_passes_the_level_of_the_logger(caplog):
    bolt = started({"pystorm.log.level": "error"})
    bolt.logger.info("quiet")
    bolt.log("said", "debug")
    assert [(record.levelname, record.message, record.funcName) for record in caplog.records] == [
        ("DEBUG", "said", "test_log_passes_the_level_of_the_logger")
    ]


def test_log_through_a_logger_of_the_users_own(caplog):
    bolt = Words()
    bolt.logger = logging.LoggerAdapter(logging.getLogger("mine"), {})
    bolt.log("said", "error")
    assert [(record.name, record.levelname, record.message) for record in caplog.records] == [("mine", "ERROR", "said")]


@pytest.mark.parametrize("serializer", ["pickle", None, ""])
def test_an_unknown_serializer_is_refused(serializer):
    with pytest.raises(ValueError, match="json, msgpack.*Given: "):
        Words(serializer=serializer)


def test_process_id_and_serializer_are_there_from_the_start():
    assert (Words().pid, Words().serializer, Words(serializer="msgpack").serializer) == (os.getpid(), "json", "msgpack")


@pytest.mark.parametrize(("given", "debug"), [("true", True), ("false", False), (True, True), (0, False)])
def test_debug_may_come_from_an_option_of_spark(given, debug):
    assert started({"topology.debug": given}).debug is debug


def test_the_name_comes_from_the_task_where_storm_did_not_say_it():
    bolt = Words()
    bolt._setup_component({}, {"taskid": 3, "task->component": {"3": "words"}})
    assert (bolt.component_name, bolt.task_id, bolt.topology_name) == ("words", 3, "")


def test_metrics_are_counted_kept_and_summed():
    bolt = Words()
    for value in (2, 3.5, Fraction(1, 2), True):
        bolt.report_metric("n", value)
    for value in ("a", None, ["x"]):
        bolt.report_metric("other", value)
    assert bolt._pystorm_metrics == {
        "n": {"count": 4, "last": True, "sum": 7.0},
        "other": {"count": 3, "last": "['x']", "sum": 0},
    }
    given = bolt._pystorm_metrics = {}
    bolt.report_metric("n", 1)
    assert given["n"]["count"] == 1


@pytest.mark.parametrize("name", [None, 5, b"n"])
def test_metrics_are_named_by_str(name):
    with pytest.raises(TypeError, match="name of a metric must be a str. Given: "):
        Words().report_metric(name, 1)


def broken():
    try:
        raise KeyError("gone")
    except KeyError as error:
        return error


def test_reported_exceptions_are_logged_with_traceback_and_kept(caplog):
    bolt, tup, error = Words(), Tuple(component="lines", values=("a",)), broken()
    bolt.raise_exception(error)  # no list was given
    bolt._pystorm_reported = []
    bolt.raise_exception(error, tup)
    assert bolt._pystorm_reported == [(error, tup)]
    first, second = caplog.messages
    assert first.startswith("Python KeyError raised\n")
    assert second.startswith(f"Python KeyError raised while processing Tuple {tup!r}\n")
    assert all("in broken" in message and message.endswith("KeyError: 'gone'\n") for message in caplog.messages)
    assert {record.levelname for record in caplog.records} == {"ERROR"}


def test_heartbeats_are_told_apart():
    assert Bolt.is_heartbeat(Tuple(component="__system", stream="__heartbeat", task=-1))
    assert not Bolt.is_heartbeat(Tuple(component="__system", stream="__heartbeat", task=1))
    assert not Bolt.is_heartbeat(Tuple(component="__system", stream="__tick", task=-1))


def test_a_component_does_not_run_alone():
    with pytest.raises(NotImplementedError, match=r"pystorm-source run package.module:Topology.*Given: Words.run\(\)"):
        Words().run()


def test_there_is_no_pipe_to_read():
    with pytest.raises(NotImplementedError, match=r"no pipe to Storm.*Given: Words.read_task_ids\(\)"):
        Words().read_task_ids()


def test_there_is_no_pipe_to_write():
    with pytest.raises(NotImplementedError, match="no pipe to Storm.*replace send_message.*Given: {'command': 'sync'}"):
        Words().send_message({"command": "sync"})


def test_a_test_may_listen_at_send_message(monkeypatch, caplog):
    """Unit tests written for pystorm replace send_message and look at what it is given."""
    sent = []
    monkeypatch.setattr(Words, "send_message", lambda self, message: sent.append(message))
    bolt = Words()
    bolt.log("hello", "warn")
    bolt.log("hello")
    bolt.report_metric("n", 5)
    bolt.raise_exception(broken())
    assert sent[:3] == [
        {"command": "log", "msg": "hello", "level": 3},
        {"command": "log", "msg": "hello", "level": 2},
        {"command": "metrics", "name": "n", "params": 5},
    ]
    assert sent[3]["command"] == "error"
    assert sent[3]["msg"].startswith("Python KeyError raised\n")
    assert sent[4:] == [{"command": "sync"}]
    assert bolt._pystorm_metrics is None
    assert not caplog.records
    sent.clear()
    bolt._current_tups = [Tuple(7, "lines", "default", 1, ("a",))]
    assert bolt.emit(["a"]) is None
    bolt.ack(bolt._current_tups[0])
    bolt.fail("5")
    assert sent == [
        {"command": "emit", "tuple": ["a"], "anchors": [7], "need_task_ids": False},
        {"command": "ack", "id": 7},
        {"command": "fail", "id": "5"},
    ]


def test_in_a_topology_nothing_is_told_to_send_message(monkeypatch, caplog):
    """A send_message that old code has overridden gets nothing that belongs to the engine."""
    sent = []
    monkeypatch.setattr(Words, "send_message", lambda self, message: sent.append(message))

    class Lines(PartitionedSpout):
        outputs = ["line string"]

        def open(self, partition, start, end):
            pass

        def next_tuple(self):
            self.emit(["a"], tup_id=0)
            return False

    class Said(Words):
        def process(self, tup):
            self.log("hello")
            self.report_metric("n", 1)
            self.emit(tup.values)
            self.ack(tup)

    lines = Lines.spec()
    plan = compile_plan(type("T", (Topology,), {"lines": lines, "said": Said.spec(inputs=[lines])}))
    worker = Worker(plan, OutputPlan(pa.schema([("word", pa.string())]), (ViewPlan("said", "default", (0,)),)))
    assert [batch.to_pylist() for batch in worker.run("lines", "p", 0, 1)] == [[{"word": "a"}]]
    assert worker.report()["metrics"]["said"]["n"] == {"count": 1, "last": 1, "sum": 1}
    assert sent == []
    assert "hello" in caplog.messages


@pytest.mark.parametrize("kind", [JavaBolt, JavaSpout, ShellBolt, ShellSpout])
def test_components_in_other_languages_are_refused_by_name(kind):
    mine = type("Mine", (kind,), {"outputs": ["a"]})
    for given in ({"name": "counts"}, {"full_class_name": "com.Acme"}, {"command": "ruby"}):
        with pytest.raises(NotImplementedError, match=f"cannot run here.*Given: Mine, '{next(iter(given.values()))}'"):
            mine.spec(**given)
    with pytest.raises(NotImplementedError, match="cannot run here: write it .* in Python.*Given: Mine$"):
        mine.spec()
    with pytest.raises(NotImplementedError, match="Given: Mine$"):
        mine()


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


def test_one_name_in_the_place_of_the_list_of_partitions_is_no_partition_for_each_letter():
    class One(PartitionedSpout):
        def partitions(self):
            return "orders"

    with pytest.raises(TopologyError, match=r"partitions\(\) of One must return a list of names; write \['orders'\]"):
        One().snapshot({}, {})


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
    assert snapshot.state == {"note": 1}
    assert snapshot.retired == frozenset()
    assert Two().align("a", 3, 7) == 7
