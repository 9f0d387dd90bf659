"""A real SQS service on the loopback interface, moto's, that counts requests and refuses them on demand.

``python -m testbed.sqs_server`` runs one until its standard input ends, and prints its URL first.
"""

import io
import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import make_server

from testbed.ports import free_port

REGION = "us-east-1"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": REGION}
"""Required in the environment of its clients; moto accepts any credentials."""


class _Quiet(MotoRequestHandler):
    disable_nagle_algorithm = True  # head and body are sent separately: the second would wait 40 ms for the client

    def log(self, type: str, message: str, *args: Any) -> None:
        """Logs no line per request."""


class SqsServer:
    """``url``: for ``endpoint_url``. ``calls``: action → number of requests, including refused ones.

    ``refused``: action → error to answer with. ``undeleted``: so many requests of DeleteMessageBatch do nothing, and
    answer that their first entry failed through no fault of the sender. ``most_at_once``: most requests in flight.
    """

    def __init__(self, port: int | None = None) -> None:
        self.calls: Counter[str] = Counter()
        self.refused: dict[str, str] = {}
        self.undeleted = self.most_at_once = self._now = 0
        self._lock = threading.Lock()
        self._app: Any = DomainDispatcherApplication(create_backend_app)
        self._server = make_server(
            "127.0.0.1", port or free_port(), self._answer, threaded=True, request_handler=_Quiet
        )
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def client(self) -> Any:
        """Returns a client of boto3."""
        import boto3

        keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
        return boto3.client("sqs", endpoint_url=self.url, region_name=REGION, **keys)

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        action = environ.get("HTTP_X_AMZ_TARGET", "").rpartition(".")[2]
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        environ["wsgi.input"] = io.BytesIO(body)
        self.calls[action] += 1
        if action in self.refused:
            start_response("403 Forbidden", [("Content-Type", "application/x-amz-json-1.0")])
            return [json.dumps({"__type": f"com.amazonaws.sqs#{self.refused[action]}", "message": "Not now"}).encode()]
        if action == "ReceiveMessage" and json.loads(body).get("WaitTimeSeconds"):
            return self._app(environ, start_response)  # may wait, so others must get in
        if action == "DeleteMessageBatch" and self.undeleted > 0:
            self.undeleted -= 1
            first = json.loads(body)["Entries"][0]["Id"]
            failed = [{"Id": first, "SenderFault": False, "Code": "InternalError", "Message": "Not now"}]
            start_response("200 OK", [("Content-Type", "application/x-amz-json-1.0")])
            return [json.dumps({"Successful": [], "Failed": failed}).encode()]
        self._now += 1
        try:
            with self._lock:  # moto's lists are not thread-safe
                self.most_at_once = max(self.most_at_once, self._now)
                return list(self._app(environ, start_response))
        finally:
            self._now -= 1


@contextmanager
def sqs_server() -> Iterator[SqsServer]:
    """Runs a new one, empty except for queues of other servers in this process: moto keeps queues by account."""
    before = {name: os.environ.get(name) for name in CREDENTIALS}
    os.environ.update(CREDENTIALS)
    server = SqsServer()
    try:
        yield server
    finally:
        server.stop()
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def main() -> None:
    with sqs_server() as server:
        print(server.url, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
