"""Options that say what the bytes of a record's key and value are."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.options import Options
from pystorm_source.spouts.decoding_types import arrow_type

_Format = Annotated[
    Literal["", "bytes", "string", "json", "avro"],
    Meta(
        description="What the bytes are: string (UTF-8); json, a document per record; avro, with the id of its schema "
        "before it, as Confluent's serializers write it; bytes as they are. Empty: string where the field is declared "
        "so, else bytes."
    ),
]
_Schema = Annotated[
    str,
    Meta(
        description="Type of json and avro, where the topology does not declare the field: columns (id bigint, item "
        "string) or a type (array<int>), as Spark DDL. Empty: that of avro.reader.schema, or none: then tuples hold "
        "what the bytes say, and it is no column."
    ),
]
_ReaderSchema = Annotated[
    str,
    Meta(
        description="avro: a schema as JSON that every record is resolved to, by Avro's rules (defaults, aliases, "
        "promotion). Empty: each is read by the schema that it was written with."
    ),
]


class DecodingOptions(Options, frozen=True, kw_only=True):
    """How a record's key and value are decoded. A spout of records has them by a subclass."""

    key_format: _Format = msgspec.field(name="key.format", default="")
    value_format: _Format = msgspec.field(name="value.format", default="")
    key_schema: _Schema = msgspec.field(name="key.schema", default="")
    value_schema: _Schema = msgspec.field(name="value.schema", default="")
    key_reader_schema: _ReaderSchema = msgspec.field(name="key.avro.reader.schema", default="")
    value_reader_schema: _ReaderSchema = msgspec.field(name="value.avro.reader.schema", default="")
    decode_errors: Annotated[
        Literal["fail", "null", "drop"],
        Meta(
            description="A key or value that cannot be decoded: fail the task, naming the record; null in its place; "
            "drop the record. The latter two log the first of each range and count the others."
        ),
    ] = msgspec.field(name="decode.errors", default="fail")
    registry_url: Annotated[
        str, Meta(description="Where the schema registry is, or several addresses of it with commas between them.")
    ] = msgspec.field(name="schema.registry.url", default="")
    registry_user_info: Annotated[str, Meta(description="user:password for the schema registry.")] = msgspec.field(
        name="schema.registry.basic.auth.user.info", default=""
    )
    registry_token: Annotated[str, Meta(description="A bearer token for the schema registry.")] = msgspec.field(
        name="schema.registry.bearer.auth.token", default=""
    )
    registry_logical_cluster: Annotated[
        str, Meta(description="With a bearer token: the id of the registry's logical cluster (lsrc-...).")
    ] = msgspec.field(name="schema.registry.bearer.auth.logical.cluster", default="")
    registry_identity_pool: Annotated[str, Meta(description="With a bearer token: the id of the identity pool.")] = (
        msgspec.field(name="schema.registry.bearer.auth.identity.pool.id", default="")
    )
    registry_ca: Annotated[
        str, Meta(description="File or folder of the certificates (PEM) that the schema registry is verified by.")
    ] = msgspec.field(name="schema.registry.ssl.ca.location", default="")
    registry_certificate: Annotated[
        str, Meta(description="File of the client's certificate (PEM), where the schema registry asks for one.")
    ] = msgspec.field(name="schema.registry.ssl.certificate.location", default="")
    registry_key: Annotated[str, Meta(description="File of that certificate's private key.")] = msgspec.field(
        name="schema.registry.ssl.key.location", default=""
    )
    registry_key_password: Annotated[str, Meta(description="Password of that private key.")] = msgspec.field(
        name="schema.registry.ssl.key.password", default=""
    )
    registry_proxy: Annotated[str, Meta(description="URL of a proxy before the schema registry.")] = msgspec.field(
        name="schema.registry.proxy", default=""
    )
    registry_timeout: Annotated[
        float, Meta(gt=0, le=3600, description="Seconds that one request to the schema registry may take.")
    ] = msgspec.field(name="schema.registry.timeout", default=10.0)
    registry_retries: Annotated[
        int,
        Meta(
            ge=0,
            le=100,
            description="How often a request to the schema registry is repeated that found it unreachable or "
            "overloaded, before the task fails.",
        ),
    ] = msgspec.field(name="schema.registry.max.retries", default=3)
    registry_wait: Annotated[
        int,
        Meta(
            ge=0, le=600_000, description="Milliseconds before the first repetition at most; twice as many each time."
        ),
    ] = msgspec.field(name="schema.registry.retries.wait.ms", default=500)

    def __post_init__(self) -> None:
        for side in ("key", "value"):
            self._check(side)
        if self.registry_token and not self.registry_logical_cluster:
            raise OptionError(
                "option 'schema.registry.bearer.auth.token' needs schema.registry.bearer.auth.logical.cluster beside "
                f"it. Given: {self.registry_logical_cluster!r}"
            )

    def format_of(self, side: str) -> str:
        """bytes, string, json or avro, empty where none is given; ``side`` is key or value."""
        return getattr(self, f"{side}_format")

    def schema_of(self, side: str) -> str:
        """The DDL, empty where none is given."""
        return getattr(self, f"{side}_schema").strip()

    def reader_schema_of(self, side: str) -> str:
        """The Avro schema, empty where none is given."""
        return getattr(self, f"{side}_reader_schema").strip()

    def registry(self) -> dict[str, Any]:
        """The configuration of Confluent's client."""
        given = {
            "url": self.registry_url,
            "basic.auth.user.info": self.registry_user_info,
            "bearer.auth.credentials.source": "STATIC_TOKEN" if self.registry_token else "",
            "bearer.auth.token": self.registry_token,
            "bearer.auth.logical.cluster": self.registry_logical_cluster,
            "bearer.auth.identity.pool.id": self.registry_identity_pool,
            "ssl.ca.location": self.registry_ca,
            "ssl.certificate.location": self.registry_certificate,
            "ssl.key.location": self.registry_key,
            "ssl.key.password": self.registry_key_password,
            "proxy": self.registry_proxy,
        }
        limits = {
            "timeout": self.registry_timeout,
            "max.retries": self.registry_retries,
            "retries.wait.ms": self.registry_wait,
        }
        return {key: value for key, value in given.items() if value} | limits

    def _check(self, side: str) -> None:
        format, schema = self.format_of(side), self.schema_of(side)
        if schema and format not in ("json", "avro"):
            raise OptionError(
                f"option '{side}.schema' is for {side}.format json and avro; {format or 'bytes'} has its type: leave "
                f"it out. Given: {schema!r}"
            )
        if schema:
            arrow_type(schema, f"option '{side}.schema'")
        if self.reader_schema_of(side) and format != "avro":
            raise OptionError(
                f"option '{side}.avro.reader.schema' is for {side}.format avro: leave it out. Given: {format!r}"
            )
        if format == "avro" and not self.registry_url:
            raise OptionError(
                f"{side}.format avro needs option 'schema.registry.url', such as http://registry:8081: the schemas "
                f"come from there. Given: {self.registry_url!r}"
            )
