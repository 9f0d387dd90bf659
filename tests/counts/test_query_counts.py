"""Counts by component, from workers' reports to the record of the topology."""

import json
from threading import Timer

import msgspec
import pytest

from pystorm_source import Bolt, Grouping
from pystorm_source.channel.reports.task_report import RangeReport, decode, encode
from pystorm_source.counts.query_counts import QueryCounts
from pystorm_source.records.record import Counts, TopologyProgress
from pystorm_source.worker.component_counts import failed_columns
from pystorm_source.worker.run_counts import RunCounts
from tests.worker.running import Numbers, Pass, rows, topology, worker_of

pytestmark = pytest.mark.timeout(60)

SCHEDULED = pytest.mark.parametrize("scheduler", ["inline", "threads"])


class Told:
    """A worker whose runs are reported to the counts of a query, as a task does it."""

    def __init__(self, made, component, scheduler="inline", **overrides):
        overrides = {key.replace("__", "."): value for key, value in overrides.items()}
        self.worker = worker_of(made, component, overrides={"topology.scheduler": scheduler, **overrides})
        self.counts = QueryCounts(self.worker.plan, self.worker.output, "run")
        self.clock = 0.0

    def read(self, batch, start, end, spout="s", attempt=0):
        """One range: its rows, and the report is taken in."""
        read = rows(self.worker.run(spout, "p", start, end))
        self.add(self.report(batch, start, end, spout, attempt))
        return read

    def report(self, batch, start, end, spout="s", attempt=0, error=None):
        broken = error is not None
        counts = self.worker.last_run()
        if broken:
            counts = RunCounts(components=failed_columns(counts.components, self.worker.plan, error, 5.0))
        return RangeReport.of(
            counts,
            batch=batch,
            spout=spout,
            partition="p",
            start=start,
            end=end,
            attempt=attempt,
            offsets=0 if broken else end - start,
            seconds=max(1e-6, self.worker.report()["seconds"]),
            broken_off=broken,
        )

    def add(self, report):
        self.clock += 1
        self.counts.add(decode(encode(report), self.clock))


@pytest.fixture
def told():
    made = []

    def make(*args, **kwargs):
        made.append(Told(*args, **kwargs))
        return made[-1]

    yield make
    for each in made:
        each.worker.stop()


def chain(bolt=Pass, par=1):
    s = Numbers.spec(par=par)
    return topology(s=s, b=bolt.spec(inputs=[s], par=par))


@SCHEDULED
def test_the_counts_of_all_ranges_are_added_up(told, scheduler):
    query = told(chain(par=2), "b", scheduler)
    query.counts.begin("one", 3)
    for start, end in ((0, 300), (300, 301), (301, 361)):
        query.read("one", start, end)
    found = query.counts.topology()
    assert found.whole
    assert found.batch == 0
    spout, bolt = found.components
    ends = 5  # calls of next_tuple that ended a range of a task
    assert spout.batch == spout.total == Counts(executed=361 + ends, emitted=361, transferred=361, acked=361)
    assert bolt.batch == Counts(executed=361, emitted=361, acked=361)
    assert [(edge.source, edge.target, edge.transferred) for edge in found.edges] == [("s", "b", 361), ("b", "", 361)]
    assert spout.tasks == bolt.tasks == 2
    assert (spout.execute.count, bolt.execute.count) == (361 + ends, 361)
    assert 0 < bolt.execute.p50 <= bolt.execute.p99 <= bolt.execute.max
    assert 0 < spout.complete.count < 361 / 20
    assert bolt.queue_capacity == 1024
    assert 0 < bolt.queue_high_mark <= 300
    assert 0 < spout.pending_high_mark <= 300
    assert spout.batch_fill > 1
    assert b"equest" not in msgspec.json.encode(found)  # a count that is zero takes no room


def test_micro_batches_are_told_apart_and_the_total_goes_on(told):
    query = told(chain(), "b")
    assert query.counts.topology() is None
    for number, (start, end) in enumerate([(0, 10), (10, 30), (30, 60)]):
        query.counts.begin(f"batch {number}", 1)
        query.counts.begin(f"batch {number}", 1)
        before = query.counts.topology()
        assert before is None or before.batch == number - 1
        query.read(f"batch {number}", start, end)
        bolt = query.counts.topology().component("b")
        assert (bolt.batch.executed, bolt.total.executed) == (end - start, end)


def test_a_range_that_was_read_twice_counts_once(told):
    query = told(chain(), "b")
    query.counts.begin("one", 1)
    query.read("one", 0, 10)
    query.read("one", 0, 10, attempt=1)
    assert query.counts.topology().component("b").total.executed == 10


def test_a_late_report_counts(told):
    query = told(chain(), "b")
    query.counts.begin("one", 2)
    query.read("one", 0, 10)
    assert not query.counts.topology().whole
    query.counts.begin("two", 1)
    query.read("one", 10, 20)
    assert query.counts.topology().whole
    query.read("two", 20, 30)
    assert query.counts.topology().component("b").total.executed == 30
    query.counts.begin("three", 1)
    query.read("one", 30, 40)
    assert query.counts.topology().component("b").total.executed == 30


class Raises(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        if tup.values[0] == 7:
            raise ValueError("seven")
        self.emit(tup.values)


def test_of_an_attempt_that_failed_only_the_errors_count(told):
    query = told(chain(Raises), "b")
    query.counts.begin("one", 1)
    with pytest.raises(Exception, match="seven") as caught:
        rows(query.worker.run("s", "p", 0, 10))
    query.add(query.report("one", 0, 10, error=caught.value))
    found = query.counts.topology()
    assert not found.whole
    assert found.component("s").batch == Counts()
    bolt = found.component("b")
    assert bolt.batch == Counts(errors=1)
    assert bolt.last_error.text == "ValueError: seven"
    assert bolt.last_error.at == 5.0
    assert [frame.partition(":")[0] for frame in bolt.last_error.frames] == ["test_query_counts.py"]
    assert bolt.last_error.frames[0].endswith(" in process")


class Reports(Bolt):
    outputs = ["n long"]
    exit_on_exception = False

    def process(self, tup):
        n = tup.values[0]
        self.report_metric("seen", 1)
        self.report_metric("last", f"n={n}")
        if n == 3:
            self.raise_exception(KeyError("three"), tup)
        if n == 7:
            raise ValueError("seven")
        self.emit(tup.values)


def test_errors_dead_letters_and_metrics_of_a_component_come_along(told):
    query = told(chain(Reports), "b", topology__max__spout__retries=2, topology__dead__letter="drop")
    query.counts.begin("one", 2)
    query.read("one", 0, 10)
    query.read("one", 10, 20)
    found = query.counts.topology()
    spout, bolt = found.components
    assert spout.batch == Counts(
        executed=22, emitted=22, transferred=22, acked=19, failed=3, retries=2, dead_letters=1, dropped=1
    )
    assert bolt.batch == Counts(executed=22, emitted=19, acked=19, failed=3, errors=4)
    assert bolt.last_error.text == "ValueError: seven"
    assert (bolt.metrics["seen"].count, bolt.metrics["seen"].sum, bolt.metrics["last"].last) == (22, 22.0, "n=19")


@SCHEDULED
def test_each_subscription_has_its_tuples(told, scheduler):
    s = Numbers.spec()
    one = Pass.spec(inputs=[s])
    many = Pass.spec(inputs={s: Grouping.ALL}, par=3)
    query = told(topology(s=s, one=one, many=many), "one", scheduler)
    query.counts.begin("x", 1)
    query.read("x", 0, 100)
    found = query.counts.topology()
    assert {edge.target: edge.transferred for edge in found.edges if edge.source == "s"} == {"one": 100, "many": 300}
    assert found.component("s").batch.transferred == 400
    assert found.component("many").batch.executed == 300


def test_the_section_is_json_and_comes_back(told):
    query = told(chain(), "b")
    query.counts.begin("one", 1)
    query.read("one", 0, 100)
    found = query.counts.topology()
    section = json.loads(json.dumps(msgspec.to_builtins(found)))
    assert msgspec.convert(section, TopologyProgress) == found


def test_late_reports_are_waited_for_until_it_was_in_vain_once(told):
    query = told(chain(), "b")
    assert query.counts.await_reports(60)
    query.counts.begin("one", 1)
    query.read("one", 0, 10)
    assert query.counts.await_reports(60)
    query.counts.begin("two", 1)
    rows(query.worker.run("s", "p", 10, 20))
    late = Timer(0.05, query.add, [query.report("two", 10, 20)])
    late.start()
    assert query.counts.await_reports(50)
    late.join()
    query.counts.begin("three", 1)
    assert not query.counts.await_reports(0.01)
    assert not query.counts.await_reports(60)  # the time limit of this test is as long
    query.read("three", 20, 30)
    assert query.counts.await_reports(60)
    query.counts.begin("four", 2)
    query.read("four", 30, 40)
    assert not query.counts.await_reports(0.01)
