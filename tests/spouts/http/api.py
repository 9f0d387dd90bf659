"""An API on loopback that pages in each way that ``HttpSpout`` knows, grows, and has the troubles of services."""

import base64
import json
import socket
import struct
import sys
from collections import Counter
from email.utils import formatdate
from http.server import ThreadingHTTPServer
from pathlib import Path
from time import monotonic, time
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

from pystorm_source import Bolt, Topology
from pystorm_source.spouts import HttpSpout
from tests.source.feed import serving
from tests.source.journal_topologies import die_once
from tests.source.pages import Answers


class Api(ThreadingHTTPServer):
    """``/PAGING/PARTITION`` answers rows of ``rows[PARTITION]``, ``most`` at once, whatever it is asked for.

    ``faults``: one for each next request: a status, (status, headers), (status, headers, body), or "cut", "reset",
    "silent". ``grows``: rows that are added after each of the next requests. ``tokens``: that are accepted; None: no
    token is needed. ``asked``: the requests.
    """

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), PageAnswers)
        self.rows = {"": []}
        self.most = 12
        self.faults = []
        self.grows = []
        self.tokens = None
        self.given = self.garbled = 0
        self.expires_in = 3600
        self.asked = []
        self.connections = 0
        self.etags = False
        self.url = f"http://127.0.0.1:{self.server_port}"

    def fill(self, count, partition=""):
        have = self.rows.setdefault(partition, [])
        numbers = range(len(have) + 1, len(have) + count + 1)
        have += [{"id": n, "text": f"{partition}{n}", "at": {"time": f"2026-01-01T00:00:{n:02}Z"}} for n in numbers]

    def ids(self, partition=""):
        return [row["id"] for row in self.rows[partition]]

    def statuses(self):
        return Counter(request["status"] for request in self.asked)

    def process_request(self, request, client_address):
        self.connections += 1
        super().process_request(request, client_address)

    def handle_error(self, request, client_address):
        if not isinstance(sys.exception(), OSError):  # of connections that were cut
            super().handle_error(request, client_address)


class PageAnswers(Answers):
    protocol_version = "HTTP/1.1"
    timeout = 30

    def do_GET(self):
        server, found = self.server, urlsplit(self.path)
        query = dict(parse_qsl(found.query, keep_blank_values=True))
        self.request_seen = {"path": found.path, "query": query, "at": monotonic(), "headers": self.headers}
        self.request_seen["line"] = self.path
        server.asked.append(self.request_seen)
        fault = server.faults.pop(0) if server.faults else None
        if fault is not None:
            self.fail(fault)
            return
        if server.tokens is not None and self.headers.get("Authorization", "") not in server.tokens:
            self.say(401, {"error": f"no: {self.headers.get('Authorization')} {self.headers.get('X-Api-Key')}"})
            return
        _, paging, *rest = found.path.split("/")
        partition = rest[0] if rest else ""
        status, answer, headers = getattr(self, f"by_{paging}")(server.rows.get(partition, []), query)
        tag = f'"{hash(json.dumps([answer if not isinstance(answer, bytes) else repr(answer), headers]))}"'
        if server.etags:
            headers = {**headers, "ETag": tag}
            if self.headers.get("If-None-Match") == tag:
                self.say(304, b"", {"ETag": tag})
                return
        self.say(status, answer, headers)
        if server.grows:
            server.fill(server.grows.pop(0), partition)

    def do_POST(self):
        server = self.server
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.request_seen = {"path": self.path, "query": form, "at": monotonic(), "headers": self.headers}
        server.asked.append(self.request_seen)
        fault = server.faults.pop(0) if server.faults else None
        if fault is not None:
            self.fail(fault)
            return
        basic = "Basic " + base64.b64encode(b"shop:client-hunter2").decode()
        in_form = form.get("client_id") == ["shop"] and form.get("client_secret") == ["client-hunter2"]
        is_known = in_form if self.path == "/token-by-form" else self.headers.get("Authorization") == basic
        if not is_known:
            self.say(401, {"error": "invalid_client"})
            return
        server.given += 1
        token = f"given-{server.given}-hunter2"
        server.tokens = {f"Bearer {token}"}
        self.say(200, {"access_token": token, "expires_in": server.expires_in, "token_type": "Bearer"})

    def say(self, status, answer, headers=None):
        self.request_seen["status"] = status
        super().say(status, answer, headers)

    def fail(self, fault):
        self.request_seen["status"] = fault if isinstance(fault, str) else 0
        if fault == "silent":
            self.rfile.read(1)  # until the other side gives up
            self.close_connection = True
        elif fault == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True
        elif fault == "cut":
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b'[{"id": 1, "text"')
            self.close_connection = True
        else:
            status, headers, body = (*(fault if isinstance(fault, tuple) else (fault,)), {}, b"")[:3]
            self.say(status, body, headers)

    def page(self, rows, begin, query):
        return rows[begin : begin + min(self.server.most, int(query.get("limit", 1000)))]

    def by_none(self, rows, query):
        return 200, {"items": rows}, {}

    def by_cursor(self, rows, query):
        begin = int(query.get("cursor", "at-0").removeprefix("at-"))
        page = self.page(rows, begin, query)
        end = begin + len(page)
        following = f"at-{end}" if len(rows) > end else None
        return 200, {"data": {"items": page}, "paging": {"next": following}}, {}

    def by_token(self, rows, query):
        """Always a next token, and whether there is more."""
        begin = int(query.get("cursor", 0))
        page = self.page(rows, begin, query)
        end = begin + len(page)
        return 200, {"items": page, "@odata.next": end, "has_more": end < len(rows)}, {}

    def by_link(self, rows, query):
        begin = int(query.get("from", 0))
        page = self.page(rows, begin, query)
        end = begin + len(page)
        links = (
            f'<{self.path.partition("?")[0]}?{urlencode({**query, "from": end})}>; rel="next"'
            if len(rows) > end
            else ""
        )
        return 200, page, {"Link": ", ".join(each for each in ['</first>; rel="first"', links] if each)}

    def by_offset(self, rows, query):
        return 200, self.page(rows, int(query["offset"]), query), {}

    def by_page(self, rows, query):
        size = min(self.server.most, int(query.get("limit", 1000)))
        page = self.page(rows, (int(query["page"]) - 1) * size, query)
        return (200, page, {}) if page or query["page"] == "1" else (404, {"error": "no such page"}, {})

    def by_since(self, rows, query):
        since = int(query.get("since", 0))
        found = [row for row in rows if row["id"] > since]
        return 200, self.page(found, 0, query), {}

    def by_time(self, rows, query):
        """At a time or later, as many APIs have it."""
        found = sorted(rows, key=lambda row: row["at"]["time"])
        return 200, self.page([row for row in found if row["at"]["time"] >= query.get("since", "")], 0, query), {}

    def by_ndjson(self, rows, query):
        _, page, headers = self.by_since(rows, query)
        return 200, "".join(json.dumps(row) + "\n" for row in page).encode(), headers

    def by_csv(self, rows, query):
        _, page, headers = self.by_offset(rows, query)
        return (
            200,
            ("text,other,id\r\n" + "".join(f'"{row["text"]}",,{row["id"]}\r\n' for row in page)).encode(),
            headers,
        )

    def by_elsewhere(self, rows, query):
        """Another host: the same port by another name."""
        return 302, b"", {"Location": self.server.url.replace("127.0.0.1", "localhost") + "/none"}


def api():
    """An API that runs as long as the block lasts."""
    return serving(Api())


def http_date(seconds_from_now):
    return formatdate(time() + seconds_from_now, usegmt=True)


class RowSpout(HttpSpout):
    outputs = ["id long", "text string"]
    page_rows = 12


class Rows(Topology):
    rows = RowSpout.spec()


class Rescuing(Topology):
    rows = HttpSpout.spec(fields=["id long", "text int"], rescued="_rescued_data")


class LateSpout(RowSpout):
    remembered = 20


class Late(Topology):
    rows = LateSpout.spec()


class EnduringSpout(RowSpout):
    exit_on_exception = False


class Enduring(Topology):
    rows = EnduringSpout.spec()


class Issues(HttpSpout):
    """All in the class."""

    outputs = ["id long", "at struct<time: timestamp>", "text"]
    url = "https://never.example.org/link/{partition}"
    paging = "link"
    page_rows = 5
    partition_names = ("north", "south")


class Desk(Topology):
    issues = Issues.spec()


PAGINGS = {
    "none": {"http.rows": "items"},
    "cursor": {"http.rows": "data.items", "http.next": "paging.next"},
    "token": {"http.paging": "cursor", "http.rows": "items", "http.next": "@odata.next", "http.more": "has_more"},
    "link": {},
    "offset": {},
    "page": {},
    "since": {"http.next": "id"},
    "ndjson": {"http.paging": "since", "http.next": "id", "http.format": "ndjson"},
    "csv": {"http.paging": "offset", "http.format": "csv"},
}
"""Path of the API → the options that read it."""


def options(server, paging="offset", **more):
    found = {"http.url": f"{server.url}/{paging}", "http.paging": paging, **PAGINGS.get(paging, {})}
    return {**found, **{key.replace("__", "."): str(value) for key, value in more.items()}}


class KilledSpout(RowSpout):
    """Kills its process when it has read the pages behind these many rows, once each."""

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.folder = Path(conf["path"])

    def read(self, cursor, limit):
        found = super().read(cursor, limit)
        if cursor in (12, 36, 60):
            die_once(self.folder / f"killed at {cursor}")
        return found


class KilledBolt(Bolt):
    """Kills its process at row 20, once."""

    outputs = ["id long", "text string"]

    def initialize(self, conf, context):
        self.folder = Path(conf["path"])

    def process(self, tup):
        if tup.values[0] == 20:
            die_once(self.folder / "bolt killed")
        self.emit(tup.values)


class Killed(Topology):
    rows = KilledSpout.spec()
    through = KilledBolt.spec(inputs=[rows])
