"""Records of Confluent's serializers: a zero byte and the id of a schema in four bytes, in front of the value."""

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from pystorm_source.errors import OptionError
from pystorm_source.errors.packages import installing
from pystorm_source.formats.lines import Malformed

if TYPE_CHECKING:
    from pystorm_source.formats.registry import Registry, Written

FRAME = 5
"""Bytes in front of the value."""
_KINDS = {"AVRO": "an Avro schema", "JSON": "a JSON schema", "PROTOBUF": "one of Protobuf"}


def schema_id(data: bytes) -> int:
    """The id in front of a record. Raises Malformed."""
    if data[:1] != b"\0" or len(data) < FRAME:
        raise Malformed("it does not begin with a zero byte and the id of a schema, as Confluent's serializers write")
    return int.from_bytes(data[1:FRAME], "big")


def each_of(values: Sequence[Any], form: Callable[[Any], Any], bad: dict[int, str]) -> list[Any]:
    """The form of each value; None for None, and for a malformed value, which goes into ``bad``."""
    shaped: list[Any] = []
    for index, each in enumerate(values):
        value = None
        if each is not None:
            try:
                value = form(each)
            except Malformed as error:
                bad[index] = str(error)
        shaped.append(value)
    return shaped


def once(key: bytes, make: Callable[[], Any], unknown: dict[bytes, str]) -> Any:
    """What ``make`` returns. If it raises Malformed, the reason goes into ``unknown`` under ``key``, and is raised
    again from there."""
    if key in unknown:
        raise Malformed(unknown[key])
    try:
        return make()
    except Malformed as error:
        unknown[key] = str(error)
        raise


class SchemasById:
    """``SchemasById(format, conf)``: the schemas of a format (avro, protobuf). ``conf``: of Confluent's client."""

    def __init__(self, format: str, conf: dict[str, Any]):
        self._format = format
        self._conf = conf

    def written(self, id: int) -> "Written":
        """The schema of this id. Raises Malformed if it is of another format, OptionError for a missing package;
        otherwise as ``Registry.written``."""
        kind = self._format.upper()
        written = self._registry.written(id, "serialized" if kind == "PROTOBUF" else None)
        if written.type != kind:
            known = f"{_KINDS.get(written.type)}: set the format to {written.type.lower()}"
            other = f"of the kind {written.type}"
            raise Malformed(f"the schema of its id is {known if written.type in _KINDS else other}")
        return written

    def message_indexes(self, data: bytes) -> tuple[list[int], int]:
        """As ``registry.message_indexes``. Raises OptionError for a missing package, too."""
        return self._registry.message_indexes(data)

    @functools.cached_property
    def _registry(self) -> "Registry":
        # Imported only by tasks, when they need it: it takes half a second.
        try:
            from pystorm_source.formats.registry import registry_of
        except ImportError as error:
            raise OptionError(
                f"the format {self._format} needs packages on every executor: {installing(self._format)}. "
                f"Given: {self._format!r}, and {error}",
                code="PYSTORM_PACKAGE_MISSING",
            ) from None
        return registry_of(self._conf)
