"""A feed on loopback by HTTP, which refuses requests for a while, and the spout that reads it."""

import json
import threading
import time
from bisect import bisect_right
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.error import HTTPError
from urllib.parse import parse_qsl, urlsplit
from urllib.request import urlopen

from pystorm_source import Bolt, CursorSpout, PartitionedSpout, RetryLater, Topology


class Feed(ThreadingHTTPServer):
    """``head`` posts. While a path is in ``busy`` it answers 429, with that Retry-After. ``asked``: path and time of
    each request. Answers to /check say nothing."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.head = 0
        self.busy = {}
        self.asked = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def most_in_a_second(self):
        """Requests in the worst second."""
        times = sorted(at for _, at in list(self.asked))
        return max(bisect_right(times, at + 1.0) - i for i, at in enumerate(times))

    def count(self, path, since=0.0):
        return sum(asked == path and at >= since for asked, at in list(self.asked))


class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        place = urlsplit(self.path)
        self.server.asked.append((place.path, time.monotonic()))
        wait = self.server.busy.get(place.path)
        if wait is not None:
            self.send_response(429)
            self.send_header("Retry-After", str(wait))
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        asked = {key: int(value) for key, value in parse_qsl(place.query)}
        answer = {
            "/head": lambda: self.server.head,
            "/posts": lambda: list(range(asked["start"], asked["end"])),
            "/done": lambda: None,
            "/check": lambda: None,
        }[place.path]()
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@contextmanager
def serving(server):
    """Runs a server as long as the block lasts."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def feed():
    """A feed that runs as long as the block lasts."""
    return serving(Feed())


class PostSpout(PartitionedSpout):
    """A page of ten posts for each call."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.url = conf["path"]

    def get(self, path):
        try:
            with urlopen(f"{self.url}/{path}", timeout=10) as answer:
                return json.load(answer)
        except HTTPError as refused:
            if refused.code == 429:
                raise RetryLater(float(refused.headers["Retry-After"]), "429 Too Many Requests") from None
            raise

    def partitions(self):
        return ["posts"]

    def latest(self, partition):
        return self.get("head")

    def commit(self, offsets):
        self.get("done")

    def open(self, partition, start, end):
        self.next, self.end = start, end
        self.page = []

    def next_tuple(self):
        if not self.page:
            if self.next == self.end:
                return False
            upto = min(self.next + 10, self.end)
            self.page = self.get(f"posts?start={self.next}&end={upto}")
            self.next = upto
        n = self.page.pop(0)
        self.emit([n], tup_id=n)
        return True


class Posts(Topology):
    posts = PostSpout.spec()


class LimitedPosts(PostSpout):
    """Each of its calls, on the driver and in tasks, takes a permit."""

    def get(self, path):
        with self.limit("feed"):
            return super().get(path)


class Check(Bolt):
    """Asks the same service for each post."""

    outputs = ["n long"]

    def initialize(self, conf, context):
        self.url = conf["path"]

    def process(self, tup):
        with self.limit("feed"), urlopen(f"{self.url}/check", timeout=10):
            self.emit(tup.values)


class CheckedPosts(Topology):
    config = {"topology.rate.limit": {"feed": "20/s"}}
    posts = LimitedPosts.spec()
    check = Check.spec(inputs=[posts])


class LimitedPages(CursorSpout):
    """The same posts by a cursor."""

    outputs = ["n long"]
    page_rows = 10
    poll_seconds = 0.0

    def initialize(self, conf, context):
        self.url = conf["path"]

    def read(self, cursor, limit):
        start = cursor or 0
        with self.limit("feed"), urlopen(f"{self.url}/head", timeout=10) as answer:
            head = json.load(answer)
        end = min(head, start + limit)
        return [[n] for n in range(start, end)], end


class ReplayedPages(LimitedPages):
    replayable = True


class CheckedPages(Topology):
    config = {"topology.rate.limit": {"feed": "20/s"}}
    pages = LimitedPages.spec()
    check = Check.spec(inputs=[pages])


class CheckedReplays(Topology):
    config = {"topology.rate.limit": {"feed": "20/s"}}
    pages = ReplayedPages.spec()
    check = Check.spec(inputs=[pages])
