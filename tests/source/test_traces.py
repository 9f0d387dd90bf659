"""Spans of a query on a real Spark, exported by OTLP as docs/OBSERVING.md says: none is lost, a service sees the trace
of each call, its ids lead up to the micro-batch, and no collector holds up the query."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import pytest

from pystorm_source.worker.tracing import FLUSH_SECONDS
from tests.docs.pages import ROOT, blocks
from tests.source.traced_job import ROWS
from tests.worker.collector import Collector

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]  # the first test of each process runs the job

TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-0[13]")
PATIENT = """
from pystorm_source.worker import tracing
tracing.FLUSH_SECONDS = 60
"""
"""Added to the set-up where spans are counted: a busy machine may need more than half a second for an export."""
EXPORT_SECONDS = 1000
"""After which the exporter gives up a collector that does not answer: longer than any of these tests."""


class Service(ThreadingHTTPServer):
    """Answers everything, but the first call for row 1 of the source with 429. ``asked``: path and traceparent."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.asked = []


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        refused = self.path == "/source/1" and not any(path == self.path for path, _ in self.server.asked)
        self.server.asked.append((self.path, self.headers["traceparent"]))
        self.send_response(429 if refused else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *args):
        pass


class Span(NamedTuple):
    """``parent``: its id, empty if it has none."""

    name: str
    trace: str
    id: str
    parent: str
    attributes: dict


class Traced(NamedTuple):
    """What a job leaves behind: its checkpoint, its spans by id, the calls that the service has seen, its seconds."""

    checkpoint: os.PathLike
    spans: dict
    asked: list
    seconds: float


def run(folder, door, endpoint, collector=None):
    """Runs the job with the set-up that the documents show."""
    modules = blocks(ROOT / "docs/OBSERVING.md", "python", modules=True)
    (set_up,) = (each.text for each in modules if "def set_up" in each.text)
    (folder / "jobs").mkdir()
    answers = collector is not None and collector.answers
    (folder / "jobs/traces.py").write_text(set_up + PATIENT if answers else set_up)
    with Service() as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        environment = {
            **os.environ,
            "SERVICE": f"http://127.0.0.1:{service.server_port}",
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "OTEL_EXPORTER_OTLP_TIMEOUT": str(EXPORT_SECONDS),
            "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]),
        }
        command = [sys.executable, "-m", "tests.source.traced_job", str(folder), door]
        done = subprocess.run(command, env=environment, check=True, timeout=270, stdout=subprocess.PIPE, text=True)
        service.shutdown()
    found = [_span(each) for each in collector.spans] if collector is not None else []
    spans = {span.id: span for span in found}
    assert len(spans) == len(found)
    return Traced(folder / "checkpoint", spans, service.asked, float(done.stdout.split()[-1]))


def _span(span):
    attributes = {each.key: getattr(each.value, each.value.WhichOneof("value")) for each in span.attributes}
    return Span(span.name, span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), attributes)


def _traced(folder, door):
    with Collector() as collector:
        return run(folder, door, collector.endpoint, collector)


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    return _traced(tmp_path_factory.mktemp("traced"), "sink")


@pytest.fixture(scope="module")
def in_foreach_batch(tmp_path_factory):
    return _traced(tmp_path_factory.mktemp("traced"), "foreachBatch")


def names_up(spans, span):
    """The names of a span, its parent, …"""
    found = [span.name]
    while span.parent:
        span = spans[span.parent]
        found.append(span.name)
    return tuple(found)


def of_header(spans, header):
    """The span that a header names."""
    trace, span = TRACEPARENT.fullmatch(header).groups()
    assert spans[span].trace == trace
    return spans[span]


def trees(traced):
    """Each span with those above it, and how often there is one."""
    return Counter(names_up(traced.spans, span) for span in traced.spans.values())


SOURCE = {
    ("micro-batch Asks",): 2,
    ("task Asks", "micro-batch Asks"): 2,
    ("ask process", "task Asks", "micro-batch Asks"): ROWS + 1,
    ("ask api", "ask process", "task Asks", "micro-batch Asks"): ROWS + 1,
}
"""One call is tried again."""
BEHIND = {
    ("task Operator",): 2,
    ("ask api", "task Operator"): ROWS,
    ("task Sink",): 2,
    ("ask api", "task Sink"): ROWS,
}


def test_no_span_of_a_source_an_operator_and_a_sink_is_lost(traced):
    assert trees(traced) == SOURCE | BEHIND


def test_no_span_is_lost_in_foreach_batch(in_foreach_batch):
    assert trees(in_foreach_batch) == SOURCE | BEHIND


def test_headers_lead_from_a_call_to_its_micro_batch(traced):
    calls = [(path, of_header(traced.spans, header)) for path, header in traced.asked if path.startswith("/source/")]
    assert Counter(path for path, _ in calls) == {f"/source/{n}": 1 + (n == 1) for n in range(ROWS)}
    assert {names_up(traced.spans, span) for _, span in calls} == {
        ("ask api", "ask process", "task Asks", "micro-batch Asks")
    }
    assert len({span.trace for _, span in calls}) == 2, "a trace for each micro-batch"


def test_a_retried_call_has_a_span_for_each_attempt(traced):
    tried = [of_header(traced.spans, header).attributes for path, header in traced.asked if path == "/source/1"]
    assert [(each["pystorm.attempt"], each["pystorm.outcome"]) for each in tried] == [(1, "retry-after"), (2, "ok")]
    assert tried[0]["pystorm.limit"] == "api" and tried[0]["error.type"] == "RetryLater"
    assert tried[0]["pystorm.waited_ms"] >= 0


@pytest.mark.parametrize(("door", "topology"), [("operator", "Operator"), ("sink", "Sink")])
def test_tasks_of_operators_and_sinks_begin_a_trace(traced, door, topology):
    calls = [of_header(traced.spans, header) for path, header in traced.asked if path.startswith(f"/{door}/")]
    assert len(calls) == ROWS
    assert {names_up(traced.spans, span) for span in calls} == {("ask api", f"task {topology}")}


@pytest.mark.parametrize("door", ["traced", "in_foreach_batch"])
def test_tasks_of_all_doors_name_the_query_and_its_micro_batch(request, door):
    spans = request.getfixturevalue(door).spans.values()
    tasks = [span.attributes for span in spans if span.name.startswith("task ")]
    assert {each["pystorm.topology"] for each in tasks} == {"Asks", "Operator", "Sink"}
    assert {each["pystorm.batch"] for each in tasks} == {0, 1}
    assert len({each["pystorm.run"] for each in tasks}) == 1


def test_no_offset_has_a_trace(traced):
    (offsets,) = {path.parent for path in traced.checkpoint.glob("offsets/[0-9]*")}
    text = "".join(path.read_text() for path in offsets.iterdir() if path.name.isdigit())
    assert "numbers" in text and "trace" not in text
    assert not any(span.trace in text for span in traced.spans.values())


def _holds_up_nothing(slow, traced):
    assert Counter(path for path, _ in slow.asked) == Counter(path for path, _ in traced.asked)
    tasks = sum(number for names, number in trees(traced).items() if names[0].startswith("task "))
    # A margin for a busy machine, far below the exporter's time-out.
    assert slow.seconds < traced.seconds + tasks * FLUSH_SECONDS + 60


def test_a_collector_that_does_not_answer_delays_a_task_by_at_most_half_a_second(traced, tmp_path):
    with Collector(answers=False) as collector:
        slow = run(tmp_path, "sink", collector.endpoint, collector)
        assert collector.requests > 0
    _holds_up_nothing(slow, traced)


def test_a_collector_that_is_down_delays_a_task_by_at_most_half_a_second(traced, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        slow = run(tmp_path, "sink", f"http://127.0.0.1:{taken.getsockname()[1]}")
    _holds_up_nothing(slow, traced)
