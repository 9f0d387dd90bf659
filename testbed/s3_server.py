"""A real S3 service on the loopback interface, moto's, that counts requests and refuses them on demand."""

import io
import os
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from testbed.ports import free_port

REGION = "us-east-1"
KEY, SECRET = "key-of-the-store", "secret-of-the-store"
"""Words of no other text, because errors omit anything that was ever given as a secret."""


class _Quiet(MotoRequestHandler):
    disable_nagle_algorithm = True  # head and body are sent separately: the second would wait 40 ms for the client
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """Logs no line per request."""


class S3Server:
    """``url``: of the service. ``calls``: list, get and put → number of such requests, including refused ones.

    ``refused``: list, get, put, or page (later pages of a list) → status of the refusal. ``refusals``: after so many,
    requests are served again. ``pages``: names after which pages of lists began.
    """

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.refused: dict[str, str] = {}
        self.refusals: Counter[str] = Counter()
        self.pages: list[str] = []
        self._lock = threading.Lock()
        self._app: Any = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", free_port(), self._answer, threaded=True, request_handler=_Quiet)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def client(self) -> Any:
        """Returns a client of boto3."""
        import boto3

        keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        return boto3.client("s3", endpoint_url=self.url, region_name=REGION, **keys)

    def options(self) -> dict[str, str]:
        """Options of an ObjectsSpout that reads from this server."""
        return {
            "objects.config.endpoint": self.url,
            "objects.config.region": REGION,
            "objects.config.access_key_id": KEY,
            "objects.config.secret_access_key": SECRET,
            "objects.client.allow_http": "true",
        }

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        query = parse_qs(environ.get("QUERY_STRING", ""))
        method = environ["REQUEST_METHOD"].lower()
        action = "list" if "list-type" in query else method
        self.calls[action] += 1
        if action == "list":
            self.pages.append(query.get("start-after", query.get("continuation-token", [""]))[0])
        status = self._refusal(action) or ("continuation-token" in query and self._refusal("page"))
        if status:
            start_response(status, [("Content-Type", "application/xml"), ("Content-Length", "0")])
            return [b""]
        with self._lock:  # moto's lists are not thread-safe
            return list(self._app(environ, start_response))

    def _refusal(self, action: str) -> str | None:
        with self._lock:
            status = self.refused.get(action)
            if status is not None and action in self.refusals:
                self.refusals[action] -= 1
                if not self.refusals[action]:
                    del self.refusals[action], self.refused[action]
            return status


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Runs a new server, empty except for the buckets of other servers in this process."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict(zip(names, (KEY, SECRET, REGION), strict=True)))
    server = S3Server()
    try:
        yield server
    finally:
        server.stop()
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
