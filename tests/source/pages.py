"""A feed of pages on loopback by HTTP, whose rows change and come late, and the spouts that read it."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import urlopen

from pystorm_source import CursorSpout, RetryLater, Topology
from tests.source.feed import serving


class Pages(ThreadingHTTPServer):
    """``rows``: account → its rows, each with an ``id``; ``most``: of a page; ``busy``: requests that are answered 429
    before the next page; ``garbled``: pages that are cut in the middle. ``asked``: account, cursor and time of each
    request."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answers)
        self.rows = {"": []}
        self.most = 1000
        self.busy = self.garbled = 0
        self.asked = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def fill(self, count, account=""):
        have = len(self.rows.setdefault(account, []))
        self.rows[account] += [{"id": n + 1, "text": f"{account}{n + 1}"} for n in range(have, have + count)]


class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        server, place = self.server, urlsplit(self.path)
        if place.path == "/accounts":
            self.say(200, list(server.rows))
            return
        if place.path == "/tickets":
            place = place._replace(query=f"{place.query}&account=")
        asked = {key: values[0] for key, values in parse_qs(place.query, keep_blank_values=True).items()}
        server.asked.append((asked["account"], int(asked["since"]), monotonic()))
        if server.busy > 0:
            server.busy -= 1
            self.say(429, None, {"Retry-After": "0.05"})
            return
        found = [row for row in server.rows[asked["account"]] if row["id"] > int(asked["since"])]
        self.say(200, sorted(found, key=lambda row: row["id"])[: min(int(asked["limit"]), server.most)])

    def say(self, status, answer, headers=None):
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if status == 200 and self.server.garbled > 0:
            self.server.garbled -= 1
            body = body[: len(body) // 2]
            self.close_connection = True
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def pages():
    """A feed that runs as long as the block lasts."""
    return serving(Pages())


class PageSpout(CursorSpout):
    """Rows behind an id."""

    outputs = ["id long", "text string"]
    page_rows = 5

    def initialize(self, conf, context):
        self.url = conf["path"]

    def get(self, path):
        try:
            with urlopen(f"{self.url}/{path}", timeout=10) as answer:
                return json.load(answer)
        except HTTPError as refused:
            if refused.code == 429:
                raise RetryLater(0.05, "429 Too Many Requests") from None
            raise

    def read(self, cursor, limit):
        asked = urlencode({"account": self.partition, "since": cursor or 0, "limit": limit})
        rows = self.get(f"rows?{asked}")
        return rows, rows[-1]["id"] if rows else cursor


class ReplayableSpout(PageSpout):
    """Rows that stay as they are."""

    replayable = True


class Replayable(Topology):
    rows = ReplayableSpout.spec()


class SparseSpout(CursorSpout):
    """Rows 0, 4 and 5, and an empty page in each other place."""

    outputs = ["id long", "text string"]
    page_rows = 1
    replayable = True

    def read(self, cursor, limit):
        at = cursor or 0
        return [(at, str(at))] if at in (0, 4, 5) else [], min(at + 1, 6)


class Sparse(Topology):
    rows = SparseSpout.spec()


class Rows(Topology):
    rows = PageSpout.spec()


class AccountSpout(PageSpout):
    """Of all accounts."""

    def partitions(self):
        return self.get("accounts")


class Accounts(Topology):
    rows = AccountSpout.spec()


class ReplayableAccountSpout(AccountSpout):
    replayable = True


class ReplayableAccounts(Topology):
    rows = ReplayableAccountSpout.spec()


class EnduringSpout(PageSpout):
    """Logs what a request raises, and goes on."""

    exit_on_exception = False


class Enduring(Topology):
    rows = EnduringSpout.spec()


class LateSpout(PageSpout):
    """Rows may come three ids late, and a row that changes comes again."""

    remembered = 20

    def read(self, cursor, limit):
        rows, _ = super().read(max((cursor or 0) - 3, 0), limit)
        return rows, max([cursor or 0, *(row["id"] for row in rows)])


class Late(Topology):
    rows = LateSpout.spec()
