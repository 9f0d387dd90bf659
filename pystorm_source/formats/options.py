"""Options for the formats of a record's key and value."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.options import Options
from pystorm_source.options.http_address import check_address
from pystorm_source.types.arrow import arrow_type

_Format = Annotated[
    Literal["", "bytes", "string", "json", "avro", "protobuf"],
    Meta(
        description="string: UTF-8. json: a document per record. avro, protobuf: as Confluent's serializers write it. "
        "Empty: string for a field of that type, otherwise bytes."
    ),
]
_Schema = Annotated[
    str,
    Meta(
        description="Spark DDL type of a json, avro or protobuf field that declares none. Empty: the type of "
        "avro.reader.schema or protobuf.message, otherwise documents, which cannot be columns."
    ),
]
_ReaderSchema = Annotated[
    str,
    Meta(description="For avro: JSON schema to convert records to. Empty: each record's own."),
]
_DescriptorFile = Annotated[
    str,
    Meta(
        description="For protobuf without a registry, as in from_protobuf: a file of protoc --descriptor_set_out "
        "--include_imports, at this path on the driver and every executor. Messages then have no prefix."
    ),
]
_Message = Annotated[
    str,
    Meta(description="Full name of the records' message in that file, such as shop.Order."),
]

_REGISTRY_DEFAULTS: dict[str, Any] = {"timeout": 10.0, "max.retries": 3, "retries.wait.ms": 500}
_REGISTRY_NUMBERS = {
    "timeout",
    "max.retries",
    "retries.wait.ms",
    "retries.max.wait.ms",
    "cache.capacity",
    "cache.latest.ttl.sec",
}


class DecodingOptions(Options, frozen=True, kw_only=True):
    """How a record's key and value are decoded. Spouts of records inherit these options."""

    key_format: _Format = msgspec.field(name="key.format", default="")
    value_format: _Format = msgspec.field(name="value.format", default="")
    key_schema: _Schema = msgspec.field(name="key.schema", default="")
    value_schema: _Schema = msgspec.field(name="value.schema", default="")
    key_reader_schema: _ReaderSchema = msgspec.field(name="key.avro.reader.schema", default="")
    value_reader_schema: _ReaderSchema = msgspec.field(name="value.avro.reader.schema", default="")
    key_descriptor_file: _DescriptorFile = msgspec.field(name="key.protobuf.descriptor.file", default="")
    value_descriptor_file: _DescriptorFile = msgspec.field(name="value.protobuf.descriptor.file", default="")
    key_message: _Message = msgspec.field(name="key.protobuf.message", default="")
    value_message: _Message = msgspec.field(name="value.protobuf.message", default="")
    decode_errors: Annotated[
        Literal["dead-letter", "fail", "null", "drop"],
        Meta(
            description="For records that cannot be decoded. dead-letter: topology.dead.letter decides. fail: the "
            "task fails. null: the field is null. drop: the record is dropped."
        ),
    ] = msgspec.field(name="decode.errors", default="dead-letter")
    registry_client: Annotated[
        dict[str, Any] | None,
        Meta(
            description="For avro and protobuf, Confluent's properties: url (needed), basic.auth.user.info, "
            "ssl.ca.location, bearer.auth.*, timeout (seconds) and more."
        ),
    ] = msgspec.field(name="schema.registry.*", default=None)

    def __post_init__(self) -> None:
        for side in ("key", "value"):
            self._check(side)
        self.registry()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.key_format!r}, {self.value_format!r}, {self.decode_errors!r})"

    def format_of(self, side: str) -> str:
        """bytes, string, json, avro or protobuf, empty if not given; ``side`` is key or value."""
        return getattr(self, f"{side}_format")

    def schema_of(self, side: str) -> str:
        """The DDL, empty if not given."""
        return getattr(self, f"{side}_schema").strip()

    def reader_schema_of(self, side: str) -> str:
        """The Avro schema, empty if not given."""
        return getattr(self, f"{side}_reader_schema").strip()

    def descriptor_file_of(self, side: str) -> str:
        """The path of a FileDescriptorSet, empty if not given."""
        return getattr(self, f"{side}_descriptor_file").strip()

    def message_of(self, side: str) -> str:
        """The full name of a message of Protobuf, empty if not given."""
        return getattr(self, f"{side}_message").strip()

    def registry(self) -> dict[str, Any]:
        """The configuration of Confluent's client. Raises OptionError for a wrong number or URL."""
        conf = {**_REGISTRY_DEFAULTS, **(self.registry_client or {})}
        for key in _REGISTRY_NUMBERS & conf.keys():
            try:
                number = float(conf[key])
            except (TypeError, ValueError):
                number = -1.0
            if not 0 <= number < float("inf"):
                raise OptionError(
                    f"option 'schema.registry.{key}' is a number of at least 0. Given: {conf[key]!r}",
                    code="PYSTORM_INVALID_OPTION",
                )
            conf[key] = number
        for url in str(conf.get("url", "")).split(",") if "url" in conf else ():
            check_address("schema.registry.url", url.strip(), None, "a URL such as http://registry:8081")
        return conf

    def _check(self, side: str) -> None:
        format, schema = self.format_of(side), self.schema_of(side)
        if schema and format not in ("json", "avro", "protobuf"):
            raise OptionError(
                f"option '{side}.schema' is for {side}.format json, avro and protobuf; {format or 'bytes'} has its "
                f"type: leave it out. Given: {schema!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        if schema:
            arrow_type(schema, f"option '{side}.schema'")
        path, message = self.descriptor_file_of(side), self.message_of(side)
        for key, needs, given in (
            ("avro.reader.schema", "avro", self.reader_schema_of(side)),
            ("protobuf.descriptor.file", "protobuf", path),
            ("protobuf.message", "protobuf", message),
        ):
            if given and format != needs:
                raise OptionError(
                    f"option '{side}.{key}' is for {side}.format {needs}: leave it out. Given: {format!r}",
                    code="PYSTORM_OPTIONS_CONFLICT",
                )
        if bool(path) != bool(message):
            raise OptionError(
                f"options '{side}.protobuf.descriptor.file' and '{side}.protobuf.message' need each other: set both, "
                f"or, to read by the schema registry, neither. Given: {path or message!r}",
                code="PYSTORM_MISSING_OPTION",
            )
        if format in ("avro", "protobuf") and not path and not (self.registry_client or {}).get("url"):
            other = f"; or set '{side}.protobuf.descriptor.file'" if format == "protobuf" else ""
            raise OptionError(
                f"{side}.format {format} needs option 'schema.registry.url', such as http://registry:8081: the schemas "
                f"come from there{other}. Given: {sorted(self.registry_client or {})!r}",
                code="PYSTORM_MISSING_OPTION",
            )
