"""A schema registry over HTTP, small and real: what Confluent's client asks for, with users and failures."""

import base64
import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.serialization import MessageField, SerializationContext


class SchemaRegistry:
    """``url``: where it listens. ``asked``: paths of requests. ``failures``: statuses that the next requests get."""

    def __init__(self, url: str, user_info: str, certificate: Path | None = None):
        self.url = url
        self.asked: list[str] = []
        self.failures: list[int] = []
        self.user_info = user_info
        self.certificate = certificate
        self._subjects: dict[str, list[int]] = {}
        self._schemas: dict[int, dict[str, Any]] = {}

    @cached_property
    def _client(self) -> SchemaRegistryClient:
        """The producers'."""
        return SchemaRegistryClient(self.conf)

    @property
    def conf(self) -> dict[str, Any]:
        conf = {"url": self.url, "basic.auth.user.info": self.user_info, "ssl.ca.location": self.certificate}
        return {key: str(value) for key, value in conf.items() if value}

    @property
    def options(self) -> dict[str, Any]:
        """Of a spout that reads by it."""
        given = {f"schema.registry.{key}": value for key, value in self.conf.items()}
        return {**given, "schema.registry.max.retries": 1, "schema.registry.retries.wait.ms": 1}

    @property
    def next_id(self) -> int:
        """Of the schema that is registered next."""
        return len(self._schemas) + 1

    def protobuf(self, messages: list[Any], topic: str = "t") -> list[bytes]:
        """The bytes that Confluent's Protobuf serializer makes of messages of one class."""
        # Here: its import needs googleapis-common-protos, which other formats do not.
        from confluent_kafka.schema_registry.protobuf import ProtobufSerializer

        serializer = ProtobufSerializer(type(messages[0]), self._client, {"use.deprecated.format": False})
        return [serializer(each, SerializationContext(topic, MessageField.VALUE)) for each in messages]

    def register(
        self, schema: Any, subject: str = "s", kind: str = "AVRO", references: list[SchemaReference] | None = None
    ) -> int:
        """The id that a producer gets for a schema (Python's form of it)."""
        text = schema if isinstance(schema, str) and kind == "PROTOBUF" else json.dumps(schema)
        return self._client.register_schema(subject, Schema(text, kind, references or []))

    def avro(self, values: list[Any], schema: Any, topic: str = "t") -> list[bytes]:
        """The bytes that Confluent's Avro serializer makes of values."""
        serializer = AvroSerializer(self._client, json.dumps(schema))
        return [serializer(value, SerializationContext(topic, MessageField.VALUE)) for value in values]

    def json(self, values: list[Any], schema: Any, topic: str = "t") -> list[bytes]:
        """The bytes that Confluent's JSON serializer makes of values."""
        serializer = JSONSerializer(json.dumps(schema), self._client)
        return [serializer(value, SerializationContext(topic, MessageField.VALUE)) for value in values]

    def answer(self, method: str, path: str, body: dict[str, Any] | None) -> tuple[int, Any]:
        """Status and answer, as the registry's REST API has them."""
        self.asked.append(path)
        if self.failures:
            return self.failures.pop(0), {"error_code": 50001, "message": "the store is down"}
        path, _, query = path.partition("?")
        if found := re.fullmatch(r"/schemas/ids/(\d+)", path):
            if int(found[1]) not in self._schemas:
                return 404, {"error_code": 40403, "message": "Schema not found"}
            return 200, _in_form(self._schemas[int(found[1])], query)
        if found := re.fullmatch(r"/subjects/([^/]+)/versions/(\d+|latest)", path):
            versions = self._subjects.get(found[1], [])
            number = len(versions) if found[2] == "latest" else int(found[2])
            if not 1 <= number <= len(versions):
                return 404, {"error_code": 40402, "message": "Version not found"}
            id = versions[number - 1]
            return 200, {"subject": found[1], "version": number, "id": id, **_in_form(self._schemas[id], query)}
        if method == "POST" and (found := re.fullmatch(r"/subjects/([^/]+)(?:/versions)?", path)):
            kept = {key: body[key] for key in ("schema", "schemaType", "references") if body.get(key)}
            id = next((id for id, each in self._schemas.items() if each == kept), self.next_id)
            self._schemas[id] = kept
            versions = self._subjects.setdefault(found[1], [])
            if id not in versions:
                versions.append(id)
            return 200, {"subject": found[1], "version": versions.index(id) + 1, "id": id, **kept}
        return 404, {"error_code": 404, "message": f"{method} {path}"}


def _in_form(schema: dict[str, Any], query: str) -> dict[str, Any]:
    """A registry gives schemas of Protobuf as text, unless it is asked for them serialized."""
    if schema.get("schemaType") == "PROTOBUF" and "format=serialized" not in query:
        return {**schema, "schema": 'syntax = "proto3";'}
    return schema


@contextmanager
def schema_registry(user_info: str = "", certificate: Path | None = None) -> Iterator[SchemaRegistry]:
    """Runs one, on a port of its own, for users who know ``user_info`` (user:password) if it is given; over TLS with
    the certificate and key of this PEM file."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # header and body leave together: apart, the second waits 40 ms until the first is acknowledged

        def reply(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            wanted = "Basic " + base64.b64encode(user_info.encode()).decode()
            if user_info and self.headers.get("Authorization") != wanted:
                status, answer = 401, {"error_code": 401, "message": "Unauthorized"}
            else:
                status, answer = registry.answer(self.command, self.path, body)
            data = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_GET = do_POST = reply

        def log_message(self, *arguments: Any) -> None:
            """Says nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        scheme = "http" if certificate is None else "https"
        registry = SchemaRegistry(f"{scheme}://127.0.0.1:{server.server_port}", user_info, certificate)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield registry
        finally:
            server.shutdown()
            thread.join()
