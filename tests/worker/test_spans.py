"""Spans of a worker's tasks and of the calls of its components."""

import asyncio
import os
import subprocess
import sys
import threading
import time

import pytest
from opentelemetry import trace
from opentelemetry.propagate import inject
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from pystorm_source import AsyncBatchBolt, AsyncBolt, Bolt, Hopeless, RetryLater
from pystorm_source.errors import OptionError, TupleFailed
from pystorm_source.limits.permits import Permits
from pystorm_source.operator import keyed
from pystorm_source.options import EngineOptions, parse
from pystorm_source.worker import tracing
from tests.docs.pages import ROOT, inline_code
from tests.worker.collector import Collector
from tests.worker.running import Numbers, Pass, numbers, topology, worker_of
from tests.worker.traces import SET_UP, SPANS

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CONFIG = {
    "trace.sample": 1, "trace.setup": SET_UP, "topology.rate.limit": {"api": "10000/s"},
    "topology.dead.letter": "drop",
}  # fmt: skip


@pytest.fixture(autouse=True)
def spans():
    SPANS.clear()
    return SPANS


def traced(bolt, rows=3, config=CONFIG, spout=Numbers, **of_bolt):
    """The spans of one sampled task, by name; the rows."""
    s = spout.spec()
    worker = worker_of(topology(s=s, b=bolt.spec(inputs=[s], **of_bolt), config=config), "b")
    try:
        with worker.spans.task("task T", PARENT, {"x": 1}):
            found = numbers(worker.run("s", "p", 0, rows))
    finally:
        worker.stop()
    return found


def named(name):
    return [span for span in SPANS.get_finished_spans() if span.name == name]


def outcomes(name):
    return sorted((span.attributes["pystorm.attempt"], span.attributes["pystorm.outcome"]) for span in named(name))


class Asks(Bolt):
    outputs = ["n long"]
    exit_on_exception = False

    def process(self, tup):
        with self.limit("api"):
            self.called(tup.values.n)
        self.emit([tup.values.n])

    def called(self, n):
        """A call of a service."""


class AsksAsync(AsyncBolt):
    outputs = ["n long"]
    exit_on_exception = False

    async def process(self, tup):
        async with self.limit("api"):
            await asyncio.sleep(0.001)
            await self.called(tup.values.n)
        self.emit([tup.values.n])

    async def called(self, n):
        """A call of a service."""


@pytest.mark.parametrize(("bolt", "above"), [(Asks, "task T"), (AsksAsync, "b process")])
def test_a_call_is_below_its_task_and_the_task_below_its_micro_batch(bolt, above):
    assert sorted(traced(bolt)) == [0, 1, 2]
    (task,) = named("task T")
    assert (f"{task.parent.trace_id:032x}", f"{task.parent.span_id:016x}") == tuple(PARENT.split("-")[1:3])
    calls = named("b api")
    assert len(calls) == 3
    assert {call.parent.span_id for call in calls} <= {span.context.span_id for span in named(above)}
    assert {span.context.trace_id for span in SPANS.get_finished_spans()} == {task.parent.trace_id}
    assert {call.attributes["pystorm.component"] for call in calls} == {"b"}


@pytest.mark.parametrize(
    ("error", "outcome"), [(RetryLater(0.0), "retry-after"), (Hopeless("bad"), "hopeless"), (OSError("x"), "error")]
)
@pytest.mark.parametrize("base", [Asks, AsksAsync])
def test_each_attempt_has_a_span_with_its_outcome(base, error, outcome):
    tried = []

    class Fails(base):
        def called(self, n):
            tried.append(n)
            if tried.count(n) == 1 and n == 1:
                raise error
            return super().called(n)

    traced(Fails)
    retried = [] if outcome == "hopeless" else [(2, "ok")]
    assert outcomes("b api") == sorted([(1, "ok"), (1, "ok"), (1, outcome), *retried])
    (failed,) = [span for span in named("b api") if span.attributes["pystorm.outcome"] == outcome]
    assert failed.attributes["error.type"] == type(error).__name__
    assert not failed.events and failed.status.description is None, "texts of exceptions may quote rows"


def test_the_span_of_a_call_is_current_in_it_and_only_in_it():
    seen = []

    class Looks(Asks):
        def process(self, tup):
            super().process(tup)
            seen.append(trace.get_current_span().get_span_context().is_valid)

        def called(self, n):
            headers = {}
            inject(headers)
            seen.append(headers["traceparent"])

    traced(Looks, rows=1)
    (call,) = named("b api")
    assert seen == [f"00-{call.context.trace_id:032x}-{call.context.span_id:016x}-01", False]
    assert not trace.get_current_span().get_span_context().is_valid


def test_concurrent_calls_do_not_mix():
    seen = {}

    class Looks(AsksAsync):
        async def called(self, n):
            before = trace.get_current_span().get_span_context().span_id
            await asyncio.sleep(0.01)
            seen[n] = before, trace.get_current_span().get_span_context().span_id

    traced(Looks, rows=20)
    assert len({span for span, _ in seen.values()}) == 20
    assert all(before == after for before, after in seen.values())


def test_a_bulk_call_has_one_span_and_limits_of_the_spec_are_inside():
    class Bulk(AsyncBatchBolt):
        outputs = ["n long"]
        batch_seconds = 0.01

        async def process_batch(self, tups):
            return [[tup.values.n] for tup in tups]

    assert sorted(traced(Bulk, rows=5, limits=["api"])) == [0, 1, 2, 3, 4]
    (call,), (limit,) = named("b process_batch"), named("b api")
    assert limit.parent.span_id == call.context.span_id
    assert call.attributes["pystorm.attempt"] == 1


def test_a_spouts_call_has_a_span():
    class Reads(Numbers):
        def open(self, partition, start, end):
            with self.limit("api"):
                super().open(partition, start, end)

    traced(Pass, spout=Reads)
    (call,), (task,) = named("s api"), named("task T")
    assert call.parent.span_id == task.context.span_id


def test_a_task_that_fails_says_so():
    class Fails(Bolt):
        def process(self, tup):
            raise OSError("row 1")

    with pytest.raises(TupleFailed):
        traced(Fails)
    (task,) = named("task T")
    assert task.attributes["pystorm.outcome"] == "error" and not task.status.is_ok


def test_a_task_that_is_not_sampled_has_no_spans():
    s = Numbers.spec()
    worker = worker_of(topology(s=s, b=AsksAsync.spec(inputs=[s]), config=CONFIG), "b")
    assert numbers(worker.run("s", "p", 0, 3)) == [0, 1, 2]
    worker.stop()
    assert SPANS.get_finished_spans() == ()


def test_without_the_option_nothing_is_imported_and_calls_are_not_wrapped():
    s = Numbers.spec()
    worker = worker_of(topology(s=s, b=AsksAsync.spec(inputs=[s]), config={}), "b")
    (bolt,) = [each.instance for each in worker.executors if each.component == "b"]
    assert worker.spans is None and bolt._pystorm_spans is None and "process" not in vars(bolt)
    worker.stop()
    script = (
        "import sys; import pystorm_source.source.data_source, pystorm_source.operator.task, pystorm_source.sink\n"
        "from tests.worker.running import *\n"
        "worker = above(Pass); assert len(numbers(worker.run('s', 'p', 0, 9))) == 9; worker.stop()\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("tests.worker.traces:fails", "the function raised ValueError"),
        ("tests.worker.traces:nothing", "has no function 'nothing'"),
        ("tests.worker.traces", "is a function as module:function"),
        ("no_such_module:f", "cannot be imported"),
    ],
)
def test_a_set_up_that_cannot_be_called(given, says):
    with pytest.raises(OptionError, match=f"trace.setup.*{says}"):
        tracing.tracer_of(parse(EngineOptions, {"trace.sample": 1, "trace.setup": given}))


def test_a_wrong_set_up_fails_the_first_task_also_if_that_is_not_sampled():
    s = Numbers.spec()
    made = topology(s=s, b=Pass.spec(inputs=[s]), config={"trace.sample": 1e-9, "trace.setup": "no_such_module:f"})
    with pytest.raises(OptionError, match=r"trace.setup.*cannot be imported"):
        worker_of(made, "b")


class Raises(SpanProcessor):
    """``at``: the method of a processor that raises while the block runs."""

    def __init__(self):
        self.at = ""

    def on_start(self, span, parent_context=None):
        if self.at == "on_start":
            raise RuntimeError("processor broken")

    def on_end(self, span):
        if self.at == "on_end":
            raise RuntimeError("processor broken")


@pytest.mark.parametrize("at", ["on_start", "on_end"])
@pytest.mark.parametrize("bolt", ["Asks", "AsksAsync"])
def test_a_provider_that_raises_costs_spans_and_no_rows_or_permits(monkeypatch, caplog, at, bolt):
    tracing.tracer_of(parse(EngineOptions, CONFIG))
    processor = Raises()
    trace.get_tracer_provider().add_span_processor(processor)
    monkeypatch.setattr(tracing, "_has_warned", False)
    given = []
    ended = Permits.ended
    monkeypatch.setattr(Permits, "ended", lambda *args: (given.append(args), ended(*args)))
    try:
        processor.at = at
        assert traced(globals()[bolt]) == [0, 1, 2]
    finally:
        processor.at = ""
    assert len(given) == 3, "the breaker hears of each call"
    assert [record.message for record in caplog.records if "spans are lost" in record.message] == [
        "spans are lost: OpenTelemetry's provider raised RuntimeError: processor broken"
    ]


class LeavesInTheMiddle(Bolt):
    """Leaves a generator in the middle of the block of a limit."""

    outputs = ["n long"]

    def process(self, tup):
        for page in self.pages():
            self.emit([page])
            break

    def pages(self):
        with self.limit("api"):
            yield 0
            yield 1


def test_a_block_that_ends_out_of_order_leaves_no_span_behind():
    before = trace.get_current_span()
    traced(LeavesInTheMiddle, rows=1)
    assert trace.get_current_span() is before
    assert [span.attributes["pystorm.outcome"] for span in named("b api")] == ["stopped"]


def test_a_block_that_ends_inside_of_another_call_leaves_that_one_current():
    left, seen = [], []

    class Overlaps(AsyncBolt):
        outputs = ["n long"]

        async def process(self, tup):
            if tup.values.n == 0:
                left.append(self.limit("api"))
                await left[0].__aenter__()
            else:
                await left[0].__aexit__(None, None, None)
                seen.append(trace.get_current_span())

    traced(Overlaps, rows=2)
    (current,) = seen
    assert current.name == "b process"


def test_a_task_whose_rows_are_not_wanted_has_not_failed():
    s = Numbers.spec()
    worker = worker_of(topology(s=s, b=Pass.spec(inputs=[s]), config=CONFIG), "b")
    with pytest.raises(GeneratorExit), worker.spans.task("task T", PARENT, {}):
        raise GeneratorExit
    worker.stop()
    (task,) = named("task T")
    assert task.attributes["pystorm.outcome"] == "stopped" and task.status.is_unset


def test_a_stateful_stage_that_fails_exports_its_spans(monkeypatch):
    flushed = []
    monkeypatch.setattr(keyed, "flush", lambda: flushed.append(True))
    with pytest.raises(Exception, match="invalid load key"):
        list(keyed.KeyedProcessor(b"no plan").handleInputRows(None, iter(()), None))
    assert flushed == [True]


@pytest.mark.parametrize("given", [-0.1, 1.1, "often"])
def test_a_share_is_between_0_and_1(given):
    with pytest.raises(OptionError, match="trace.sample"):
        parse(EngineOptions, {"trace.sample": given})


class Hangs(SpanExporter):
    """A collector that answers when the test says so. ``begun``: exports so far."""

    def __init__(self):
        self.answers, self.begun = threading.Event(), 0

    def export(self, spans):
        self.begun += 1
        self.answers.wait(60)
        return SpanExportResult.SUCCESS


def test_an_export_that_hangs_delays_one_task_by_half_a_second():
    tracer, exporter = tracing.tracer_of(parse(EngineOptions, CONFIG)), Hangs()
    trace.get_tracer_provider().add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=1e7))
    began = time.monotonic()
    for _ in range(3):
        tracer.start_span("task T").end()
        tracing.note_end()
        tracing.flush()
    seconds, begun = time.monotonic() - began, exporter.begun
    exporter.answers.set()
    tracing._flushing.join()
    assert begun == 1
    assert tracing.FLUSH_SECONDS <= seconds < 2 * tracing.FLUSH_SECONDS


EXPORTS = """
import os
from pystorm_source.options import EngineOptions, parse
from pystorm_source.worker import tracing
tracer = tracing.tracer_of(parse(EngineOptions, {"trace.sample": 1, "trace.setup": os.environ["SET_UP"]}))
tracer.start_span("task T").end()
"""


def test_a_process_is_set_up_by_the_variables_of_the_documents_alone():
    code = inline_code(ROOT / "docs/OBSERVING.md")
    variables = dict(each.split("=") for each in code if each.startswith("OTEL_") and "=" in each)
    (set_up,) = {each for each in code if each.startswith("opentelemetry.") and ":" in each}
    with Collector() as collector:
        places = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint, "SET_UP": set_up}
        environment = {**os.environ, **variables, **places}
        done = subprocess.run([sys.executable, "-c", EXPORTS], env=environment, check=True, capture_output=True)
    assert [span.name for span in collector.spans] == ["task T"], done.stderr
