"""Reports of real tasks in real queries, and queries whose reports go nowhere."""

import json
import random
import socket
import threading
from collections import Counter, deque
from contextlib import closing, suppress

import pytest

from pystorm_source.channel.reports.protocol import FrameRefused
from pystorm_source.records.from_spark import records_of
from tests.channel.reports.made_reports import Caller, body, wait_until
from tests.source.queries import Query
from tests.source.spy import SpySource, reports_in

pytestmark = [pytest.mark.spark, pytest.mark.timeout(180)]


@pytest.fixture
def query(tmp_path):
    return Query(tmp_path)


@pytest.fixture
def spied(spark):
    spark.dataSource.register(SpySource)
    return lambda options: spark.readStream.format("pystorm_spy").options(**options).load()


def reported(world, count):
    """Waits for that many reports: those of the last micro-batch are written when Spark ends the runner."""
    return wait_until(lambda: (found := reports_in(world.folder)) and len(found) >= count and found)


def test_every_range_is_reported_before_the_next_batch_is_planned(world, query, spied):
    world.put(a=50, b=(10, 30))
    query.run(spied(world.options("Doubled", maxOffsetsPerTrigger=20)))
    found = reported(world, 6)
    read = Counter()
    for each in found:
        assert each["offsets"] == each["rows"] == each["acked"] == each["end"] - each["start"]
        assert each["failed"] == each["attempt"] == 0
        assert 0 < each["seconds"] < 60
        assert each["stalls"].get("output_full", 0.0) <= each["seconds"]
        (fullest,) = each["components"].pop("q")  # no retries, no dead letters
        assert 0 < fullest <= 1024
        assert each["components"] == {}
        assert 0 < each["latency"]["p50"] <= each["latency"]["p99"]
        read[each["spout"], each["partition"]] += each["offsets"]
    assert read == {("numbers", "a"): 50, ("numbers", "b"): 20}
    batches = list(dict.fromkeys(each["batch"] for each in found))
    assert len(batches) == 4
    assert [each["batch"] for each in found] == sorted((each["batch"] for each in found), key=batches.index)


def test_ranges_that_share_a_task_report_one_by_one(world, query, spied, spark):
    names = [f"p{at:02}" for at in range(40)]
    world.put(**dict.fromkeys(names, 5))
    frame = spied(world.options("Doubled"))
    tasks = []
    running = (
        frame.writeStream.foreachBatch(lambda batch, _: tasks.append((batch.rdd.getNumPartitions(), batch.count())))
        .option("checkpointLocation", str(query.checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert running.awaitTermination(90) and running.exception() is None
    assert sum(rows for _, rows in tasks) == 200
    assert max(count for count, _ in tasks) <= 20
    found = {(each["partition"], each["start"], each["end"], each["rows"]) for each in reported(world, 40)}
    assert {(name, end - start, rows) for name, start, end, rows in found} == {(name, 5, 5) for name in names}


def test_a_task_that_failed_reports_its_error_and_its_next_attempt_what_it_has_read(world, query, spied):
    world.put(a=20, b=20)
    query.run(spied(world.options("FailsOnce")))
    found = reported(world, 3)
    read = [each for each in found if "broken_off" not in each]
    assert {(each["offsets"], each["rows"]) for each in read} == {(20, 20)}
    assert sorted(each["attempt"] for each in read) == [0, 1]


def test_the_sums_of_the_progress_are_those_of_the_sink(world, query, spark):
    world.put(a=95, b=(10, 60))
    frame = spark.readStream.format("pystorm").options(**world.options("Doubled", maxOffsetsPerTrigger=40)).load()
    batches = query.run(frame)
    shown = [record for progress in query.progress for record in records_of(json.loads(progress.json)).values()]
    told = [record.topology for record in shown if record.topology is not None]
    if not told:
        pytest.skip("this Spark asks for no report")
    assert [topology.batch for topology in told] == list(range(len(batches) - 1))
    for topology, record, rows in zip(told, shown[1:], batches, strict=False):
        assert topology.whole
        assert record.counts_of_batch_before
        (out,) = [edge for edge in topology.edges if not edge.target]
        assert out.transferred == topology.component(out.source).batch.emitted == len(rows)
        assert topology.component("numbers").batch.acked == record.tasks.offsets
    assert told[-1].component("numbers").total.emitted == sum(len(rows) for rows in batches[:-1])


def test_no_reports_with_feedback_off(world, query, spied):
    world.put(a=20)
    assert len(query.run(spied(world.options(feedback="off", maxOffsetsPerTrigger=10)))) == 2
    assert reports_in(world.folder) == []


@pytest.mark.parametrize("blocked", ["on the way", "at the driver"])
def test_a_port_that_is_blocked_harms_no_query(world, query, spied, blocked):
    world.put(a=2000)
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        # An address without a host: what is sent there is refused or vanishes, as behind a firewall.
        way = {"feedback__host": "198.51.100.1"}
        options = way if blocked == "on the way" else {"feedback__port": taken.getsockname()[1]}
        assert len(query.run(spied(world.options(maxOffsetsPerTrigger=500, **options)))) == 4
    assert query.rows == [("a", n) for n in range(2000)]
    assert reports_in(world.folder) == []


def test_hostile_callers_neither_stop_nor_mislead_a_query(world, query, spied):
    world.put(a=2000)
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        address = free.getsockname()
    with Attack(address) as attack:
        frame = spied(world.options(maxOffsetsPerTrigger=400, feedback__port=address[1]))
        assert len(query.run(frame)) == 5
    assert attack.calls > 100
    assert query.rows == [("a", n) for n in range(2000)]
    assert all(each["spout"] == "numbers" and each["offsets"] == 400 for each in reports_in(world.folder))


class Attack:
    """Calls an address again and again, as soon as anyone listens there: garbage, silence, forged reports."""

    def __init__(self, address):
        self._address = address
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._mute = deque(maxlen=200)
        self.calls = 0

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._over.set()
        self._thread.join(20)

    def _run(self):
        while not self._over.wait(0.001):
            with suppress(OSError, FrameRefused):
                caller = Caller(self._address, b"a guess")
                self.calls += 1
                self._mute.append(caller)  # the oldest of them is closed
                if self.calls % 3 == 0:
                    caller.write(random.randbytes(1000))
                if self.calls % 3 == 1:
                    caller.send(body(spout="forged"))
