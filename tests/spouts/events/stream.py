"""A server on loopback that sends events, and has the troubles of servers."""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pystorm_source import Topology
from pystorm_source.spouts import EventStreamSpout
from tests.source.feed import serving


class Events(Topology):
    events = EventStreamSpout.spec()


class Stream(ThreadingHTTPServer):
    """Sends ``count`` events behind the id that it is asked for, then waits for more.

    ``faults``: one for each next connection: a status, (status, headers, body), or an int of bytes below 0: the answer
    ends that many bytes before the end of the last event. ``before``: bytes before the events. ``pause``: seconds
    between two bytes. ``asked``: time and headers of each request.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), StreamAnswers)
        self.count = 0
        self.faults = []
        self.before = b""
        self.pause = 0.0
        self.asked = []
        self.more = threading.Condition()
        self.is_over = False
        self.url = f"http://127.0.0.1:{self.server_port}/events?key=hunter2"

    def fill(self, count):
        with self.more:
            self.count += count
            self.more.notify_all()

    def server_close(self):
        with self.more:
            self.is_over = True
            self.more.notify_all()
        super().server_close()

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), OSError):  # of connections that the client has closed
            super().handle_error(request, client_address)


class StreamAnswers(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.asked.append((time.monotonic(), self.headers))
        fault = server.faults.pop(0) if server.faults else None
        if isinstance(fault, tuple) or (fault or 0) > 0:
            status, headers, body = (*(fault if isinstance(fault, tuple) else (fault,)), {}, b"")[:3]
            self.begin(status, headers)
            self.wfile.write(body)
            return
        self.begin(200, {"Content-Type": "text/event-stream; charset=utf-8"})
        at = int(self.headers.get("Last-Event-ID") or 0)
        data = server.before + b"".join(map(event, range(at + 1, server.count + 1)))
        at = server.count
        if fault is not None:
            self.wfile.write(data[:fault])
            return
        self.send(data)
        while not server.is_over:
            with server.more:
                server.more.wait(0.05)
                data, at = b"".join(map(event, range(at + 1, server.count + 1))), server.count
            self.send(data or b": nothing new\n\n")

    def begin(self, status, headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def send(self, data):
        if not self.server.pause:
            self.wfile.write(data)
            return
        for at in range(len(data)):
            self.wfile.write(data[at : at + 1])
            time.sleep(self.server.pause)

    def log_message(self, *args):
        pass


def event(n):
    return b"id: %d\r\nevent: edit\r\ndata: %s\r\ndata: more\r\n\r\n" % (n, json.dumps({"n": n}).encode())


def stream():
    """A server that runs as long as the block lasts."""
    return serving(Stream())


def options(server, folder, **more):
    return {
        "topology": "tests.spouts.events.stream:Events",
        "events.url": server.url,
        "journal.path": str(folder / "journal"),
        "batch.target.millis": "200",
        "maxOffsetsPerTrigger": "7",
        **{key.replace("__", "."): str(value) for key, value in more.items()},
    }
