"""Spans of a query on a real Spark: a service sees the trace of each call, and its ids lead up to the micro-batch."""

import json
import os
import re
import subprocess
import sys
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.source.traced_job import ROWS

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]  # the first test of each process runs the job

TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-0[13]")


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


@pytest.fixture(scope="module")
def traced(tmp_path_factory):
    """What a job leaves behind: its folder, its spans by id, the calls that the service has seen."""
    folder = tmp_path_factory.mktemp("traced")
    (folder / "spans").mkdir()
    with Service() as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        places = {"TRACES": str(folder / "spans"), "SERVICE": f"http://127.0.0.1:{service.server_port}"}
        command = [sys.executable, "-m", "tests.source.traced_job", str(folder)]
        subprocess.run(command, env={**os.environ, **places}, check=True, timeout=270)
        service.shutdown()
    lines = [line for path in (folder / "spans").glob("*.jsonl") for line in path.read_text().splitlines()]
    spans = {span["context"]["span_id"]: span for span in map(json.loads, lines)}
    assert len(spans) == len(lines)
    return folder, spans, service.asked


def names_up(spans, span):
    """The names of a span, its parent, …"""
    found = []
    while span is not None:
        found.append(span["name"])
        span = spans[span["parent_id"]] if span["parent_id"] else None
    return found


def of_header(spans, header):
    """The span that a header names."""
    trace, span = TRACEPARENT.fullmatch(header).groups()
    assert spans[f"0x{span}"]["context"]["trace_id"] == f"0x{trace}"
    return spans[f"0x{span}"]


def test_headers_lead_from_a_call_to_its_micro_batch(traced):
    _, spans, asked = traced
    calls = [(path, of_header(spans, header)) for path, header in asked if path.startswith("/source/")]
    assert Counter(path for path, _ in calls) == {f"/source/{n}": 1 + (n == 1) for n in range(ROWS)}
    assert {tuple(names_up(spans, span)) for _, span in calls} == {
        ("ask api", "ask process", "task Asks", "micro-batch Asks")
    }
    assert len({span["context"]["trace_id"] for _, span in calls}) == 2, "a trace for each micro-batch"


def test_a_retried_call_has_a_span_for_each_attempt(traced):
    _, spans, asked = traced
    tried = [of_header(spans, header)["attributes"] for path, header in asked if path == "/source/1"]
    assert [(each["pystorm.attempt"], each["pystorm.outcome"]) for each in tried] == [(1, "retry-after"), (2, "ok")]
    assert tried[0]["pystorm.limit"] == "api" and tried[0]["error.type"] == "RetryLater"
    assert tried[0]["pystorm.waited_ms"] >= 0


@pytest.mark.parametrize(("door", "topology"), [("operator", "Operator"), ("sink", "Sink")])
def test_tasks_of_operators_and_sinks_begin_a_trace(traced, door, topology):
    _, spans, asked = traced
    calls = [of_header(spans, header) for path, header in asked if path.startswith(f"/{door}/")]
    assert len(calls) == ROWS
    assert {tuple(names_up(spans, span)) for span in calls} == {("ask api", f"task {topology}")}


def test_tasks_of_all_doors_name_the_query_and_its_micro_batch(traced):
    _, spans, _ = traced
    tasks = [span["attributes"] for span in spans.values() if span["name"].startswith("task ")]
    assert {each["pystorm.topology"] for each in tasks} == {"Asks", "Operator", "Sink"}
    assert {each["pystorm.batch"] for each in tasks} == {0, 1}
    assert len({each["pystorm.run"] for each in tasks}) == 1


def test_no_offset_has_a_trace(traced):
    folder, spans, _ = traced
    (offsets,) = {path.parent for path in (folder / "checkpoint").glob("offsets/[0-9]*")}
    text = "".join(path.read_text() for path in offsets.iterdir() if path.name.isdigit())
    assert "numbers" in text and "trace" not in text
    assert not any(span["context"]["trace_id"].removeprefix("0x") in text for span in spans.values())
