"""A collector of OpenTelemetry's: takes spans by OTLP over HTTP, as exporters send them."""

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Collector(ThreadingHTTPServer):
    """Runs while it is a context. ``answers``: whether it answers requests, or accepts them and is silent.

    ``spans``: those received, in their protobuf form; ``requests``: how many have come.
    """

    daemon_threads = True
    block_on_close = False

    def __init__(self, answers=True):
        super().__init__(("127.0.0.1", 0), _Requests)
        self.spans, self.requests, self.answers = [], 0, answers
        self.closes, self.lock = threading.Event(), threading.Lock()

    @property
    def endpoint(self):
        """For OTEL_EXPORTER_OTLP_ENDPOINT."""
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *raised):
        self.closes.set()
        self.shutdown()
        self.server_close()


class _Requests(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        assert self.headers["Content-Type"] == "application/x-protobuf"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Content-Encoding"] == "gzip":
            body = gzip.decompress(body)
        if self.path != "/v1/traces":  # metrics and logs
            self.send_error(404)
            return
        asked = ExportTraceServiceRequest.FromString(body)
        collector = self.server
        with collector.lock:
            collector.requests += 1
            collector.spans += [
                span for each in asked.resource_spans for scope in each.scope_spans for span in scope.spans
            ]
        if not collector.answers:
            collector.closes.wait()
            return
        answer = ExportTraceServiceResponse().SerializeToString()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-protobuf")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *args):
        pass
