"""A real S3 service on the loopback interface, moto's, that counts requests and refuses them when it is told to."""

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
"""Words of no other text: errors are shown without what was once given as a secret."""


class _Quiet(MotoRequestHandler):
    disable_nagle_algorithm = True  # head and body are sent apart: the second would wait 40 ms for the client
    protocol_version = "HTTP/1.1"

    def log(self, type: str, message: str, *args: Any) -> None:
        """No line for each request."""


class S3Server:
    """``url``: of the service. ``calls``: list, get and put → requests of it, those that were refused included.

    ``refused``: one of these, or page, for those of a list behind the first → status that it is answered by.
    ``refusals``: after so many it is answered again. ``pages``: names behind which pages of lists began.
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
        """A client of boto3."""
        import boto3

        keys = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        return boto3.client("s3", endpoint_url=self.url, region_name=REGION, **keys)

    def options(self) -> dict[str, str]:
        """Those of an ObjectsSpout that reads here."""
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
        with self._lock:  # moto's lists are not made for several threads
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
    """A new one, empty but for the buckets that other servers of this process have."""
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
