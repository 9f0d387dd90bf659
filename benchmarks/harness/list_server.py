"""A store that has only names: it answers S3's ListObjectsV2 from memory, so that a million objects cost nothing.

``python -m benchmarks.harness.list_server KNOWN`` serves that many names, and prints its URL; each number on its
standard input adds so many names after the last one.
"""

import sys
from bisect import bisect_right
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlsplit

PAGE = 1000


def name_of(number: int) -> str:
    return f"in/day={number // 100_000:04d}/{number:012d}.parquet"


class ListServer(ThreadingHTTPServer):
    def __init__(self, known: int):
        super().__init__(("127.0.0.1", 0), _Answer)
        self.names = [name_of(number) for number in range(known)]


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        behind = query.get("continuation-token", query.get("start-after", [""]))[0]
        names = self.server.names  # type: ignore[attr-defined]
        at = bisect_right(names, behind)
        page = names[at : at + PAGE]
        more = at + PAGE < len(names)
        token = f"<NextContinuationToken>{page[-1]}</NextContinuationToken>" if more else ""
        rows = "".join(
            f"<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>&quot;e&quot;</ETag>"
            f"<Size>1000</Size></Contents>"
            for name in page
        )
        text = f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{token}{rows}</ListBucketResult>"
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *of: object) -> None:
        """Logs no line per request."""


def main(known: int) -> None:
    server = ListServer(known)
    Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    for line in sys.stdin:
        begin = len(server.names)
        server.names += [name_of(number) for number in range(begin, begin + int(line))]
        print("added", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
