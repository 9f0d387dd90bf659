"""Schemas by id, from a schema registry, through Confluent's client."""

import io
import threading
from typing import Any

import msgspec
from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.serde import SchemaId
from confluent_kafka.serialization import SerializationError

from pystorm_source.errors import OptionError, WorldError
from pystorm_source.errors.redaction import without_credentials
from pystorm_source.formats.lines import Malformed
from pystorm_source.options.http_address import shown_address

_UNKNOWN = 404
_REFUSED = (401, 403)
_LONGEST_PREFIX = 64
"""Bytes that name schema and message. Too small: messages inside of some fifty others cannot be named. Too large: the
time to read a damaged number grows with the square of it."""


class Written(msgspec.Struct, frozen=True):
    """A schema in the registry: its type (AVRO, JSON, PROTOBUF), its text, and the texts of the schemas that it refers
    to, under the names that it uses."""

    type: str
    text: str
    references: dict[str, str]


class Registry:
    """``Registry(conf)``: configuration of Confluent's client. Blocking, any thread. Keeps fetched schemas forever,
    because the schema of an id never changes.

    Use ``registry_of``. Raises OptionError for settings that the client refuses.
    """

    def __init__(self, conf: dict[str, Any]):
        self._url = ", ".join(shown_address(each.strip()) for each in conf["url"].split(","))
        self._written: dict[tuple[int, str | None], Written] = {}
        try:
            self._client = SchemaRegistryClient(conf)
        except (ValueError, TypeError, OSError) as error:
            raise OptionError(
                f"options 'schema.registry.*' are none for Confluent's client: {without_credentials(str(error))}. "
                f"Given: {self._url}",
                code="PYSTORM_INVALID_OPTION",
            ) from None

    def written(self, id: int, form: str | None = None) -> Written:
        """The schema of this id. ``form``: of the texts; None: as they were registered, ``serialized``: descriptors of
        Protobuf in base64.

        Raises Malformed if it, or a schema that it refers to, does not exist; WorldError if the registry does not
        answer, or refuses to.
        """
        found = self._written.get((id, form))
        if found is None:
            schema = self._asked(f"schema {id}", self._client.get_schema, id, None, form)
            references: dict[str, str] = {}
            self._collect(schema, form, references)
            written = Written(schema.schema_type or "AVRO", schema.schema_str or "", references)
            found = self._written[id, form] = written
        return found

    @staticmethod
    def message_indexes(data: bytes) -> tuple[list[int], int]:
        """The numbers that name the message of a Protobuf record, and where the message begins. Raises Malformed."""
        head, schema = io.BytesIO(data[:_LONGEST_PREFIX]), SchemaId("PROTOBUF")
        try:
            schema.from_bytes(head)
        except (EOFError, SerializationError):
            raise Malformed("behind the id of its schema, there are no numbers that name a message") from None
        return schema.message_indexes or [0], head.tell()

    def _collect(self, schema: Schema, form: str | None, references: dict[str, str]) -> None:
        for each in schema.references or ():
            if each.name and each.name not in references:
                what = f"version {each.version} of subject {each.subject!r}"
                # Also one that was deleted since: there are records of it.
                asked = self._asked(what, self._client.get_version, each.subject, each.version, True, form)
                references[each.name] = asked.schema.schema_str or ""
                self._collect(asked.schema, form, references)

    def _asked(self, what: str, ask: Any, *arguments: Any) -> Any:
        try:
            return ask(*arguments)
        except SchemaRegistryError as error:
            if error.http_status_code == _UNKNOWN:
                raise Malformed(f"the schema registry {self._url} has no {what}") from None
            if error.http_status_code in _REFUSED:
                raise WorldError(
                    f"the schema registry refuses to give {what}: {error}. Set schema.registry.basic.auth.user.info or "
                    f"another of its credentials. Given: {self._url}",
                    code="PYSTORM_KAFKA_UNREACHABLE",
                ) from None
            raise self._unreachable(what, error) from error
        except Exception as error:  # the client passes on any exception of its HTTP library
            raise self._unreachable(what, error) from error

    def _unreachable(self, what: str, error: Exception) -> WorldError:
        return WorldError(
            f"the schema registry does not give {what} ({type(error).__name__}: "
            f"{without_credentials(str(error))}): see that it runs and that "
            f"executors reach it, or raise schema.registry.timeout and schema.registry.max.retries. "
            f"Given: {self._url}",
            code="PYSTORM_KAFKA_UNREACHABLE",
        )


_registries: dict[frozenset[tuple[str, Any]], Registry] = {}
_lock = threading.Lock()


def registry_of(conf: dict[str, Any]) -> Registry:
    """This process's registry for this configuration: all its tasks share the connection and the schemas."""
    key = frozenset(conf.items())
    with _lock:
        found = _registries.get(key)
        if found is None:
            found = _registries[key] = Registry(conf)
        return found
