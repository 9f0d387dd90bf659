"""What a task costs besides its rows: little, once its process is warm."""

import pickle
import sys
from collections import Counter
from functools import partial

import pytest
from pyspark import cloudpickle

from pystorm_source import Topology
from pystorm_source.options import EngineOptions, Options
from pystorm_source.source.data_source import PystormDataSource
from pystorm_source.source.offsets.offsets import Key, Range, Ranges
from pystorm_source.source.register import _source_of, planned
from pystorm_source.source.request import ReadRequest
from pystorm_source.source.task.range_partition import PlannedBatch, RangePartition
from pystorm_source.testing.watch import let_come
from pystorm_source.worker import warm
from tests.source import topologies


class Task:
    """Runs a task of an empty range as Spark's worker does, from the bytes that it is sent."""

    def __init__(self, source):
        schema = source.schema()
        reader = source.streamReader(schema)
        planned = PlannedBatch.of(Ranges.of([Range(Key("numbers", "a"), 0, 1)]), source.request.fingerprint, "run")
        self.reader = cloudpickle.dumps((lambda partition: (reader.read(partition), source.name()), schema))
        self.partition = cloudpickle.dumps(RangePartition("numbers", "a", 7, 7, planned))

    def run(self):
        read, _ = pickle.loads(self.reader)
        batches, _ = read(pickle.loads(self.partition))
        return list(batches)


def calls_of(function):
    """Calls of functions written in Python."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event == "call"

    let_come()  # CPython 3.11: traced code loops forever while an earlier test's interrupt is pending
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.fixture(autouse=True)
def _cold():
    yield
    while warm._idle:
        warm._idle.popitem()[1].stop()


def by_reference(world):
    return PystormDataSource(world.options("Doubled"))


def by_value(world):
    source = _source_of(*planned(topologies.Doubled))
    return pickle.loads(cloudpickle.dumps(source))({"path": str(world.folder)})


@pytest.fixture
def read_tables(monkeypatch):
    """Table → how often its options were read."""
    counts = Counter()

    def counted(read, table, given):
        counts[table.__name__] += 1
        return read(table, given)

    for table in (Options, EngineOptions):
        read = table.defaults_beside.__func__  # what a table is asked once by each `parse`
        monkeypatch.setattr(table, "defaults_beside", classmethod(partial(counted, read)))
    return counts


class TwoConfigs(Topology):
    """One component with a config of its own, in which it differs from the topology; one in which it does not."""

    numbers = topologies.NumberSpout.spec()
    same = topologies.DoubleBolt.spec(inputs=[numbers], config={"topology.debug": False})
    own = topologies.DoubleBolt.spec(
        inputs=[same], config={"topology.tick.tuple.freq.secs": 5}, par={"": 1, "large": 3}
    )


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
def test_options_are_read_once_at_load_and_never_in_a_task(world, monkeypatch, read_tables, scheduler):
    monkeypatch.setattr(topologies, "TwoConfigs", TwoConfigs, raising=False)
    source = PystormDataSource(
        world.options("TwoConfigs", topology__scheduler=scheduler, topology__environment="large")
    )
    # The engine's for the topology and for each component with a config: what holds is different for each.
    assert read_tables == {"SourceOptions": 1, "EngineOptions": 3, "JournalOptions": 1}
    read_tables.clear()
    task = Task(source)
    assert task.run() == []
    assert read_tables == {}
    own, same = (source.request.plan.component(name).options for name in ("own", "same"))
    assert (own.tick_frequency, same.tick_frequency) == (5, None)
    assert same is source.request.plan.options


def test_a_registered_topology_is_read_under_the_options_once(world, read_tables):
    source = _source_of(*planned(topologies.Doubled))
    assert read_tables == {"EngineOptions": 1}
    read_tables.clear()
    source({"path": str(world.folder), "topology.debug": "true"})
    assert read_tables == {"SourceOptions": 1, "EngineOptions": 1, "JournalOptions": 1}


@pytest.mark.parametrize("source", [by_reference, by_value])
def test_a_task_of_an_empty_range_makes_few_calls(world, source):
    task = Task(source(world))
    assert task.run() == []
    assert calls_of(task.run) < 400


def test_tasks_share_what_they_are_sent(world):
    request = PystormDataSource(world.options("Doubled")).request
    sent = pickle.dumps(request)
    assert pickle.loads(sent) == request
    assert pickle.loads(sent) is pickle.loads(sent)


def test_the_fingerprint_is_that_of_the_process_where_a_request_arrives(world):
    request = PystormDataSource(world.options("Doubled")).request
    assert request.fingerprint
    assert "fingerprint" not in vars(pickle.loads(pickle.dumps(request)))


def test_requests_that_differ_stay_apart(world):
    one, two = (ReadRequest.of(world.options("Doubled", maxOffsetsPerTrigger=limit)) for limit in (1, 2))
    assert [pickle.loads(pickle.dumps(each)) for each in (one, two)] == [one, two]


def test_an_instance_of_a_registered_topology_keeps_its_name(world):
    source = pickle.loads(cloudpickle.dumps(by_value(world)))
    again = pickle.loads(cloudpickle.dumps(source))
    assert again.name() == source.name() == "pystorm_doubled"
    assert again.request == source.request
