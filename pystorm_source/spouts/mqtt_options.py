"""Options of MqttSpout."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from pystorm_source.errors import OptionError
from pystorm_source.options import Options
from pystorm_source.options.names import distinct

MOST_IN_FLIGHT = 32_767
"""Half of MQTT's packet identifiers: so that none is used again while its message is remembered."""


class MqttOptions(Options, frozen=True, kw_only=True):
    """Options of MqttSpout, by the names of MQTT's client."""

    further = (
        *("mqtt.topics", "mqtt.client_id", "mqtt.port", "mqtt.protocol", "mqtt.username", "mqtt.password"),
        *("mqtt.session_expiry_seconds", "mqtt.receive_maximum", "mqtt.keepalive"),
        *("mqtt.tls", "mqtt.tls.ca.file", "mqtt.tls.cert.file", "mqtt.tls.key.file"),
    )

    host: Annotated[str, Meta(min_length=1, description="Host of the broker.")] = msgspec.field(name="mqtt.host")
    topics: Annotated[
        str,
        Meta(description="Comma-separated topic filters; $share/group/topic shares a topic."),
    ] = msgspec.field(name="mqtt.topics")
    client_id: Annotated[
        str,
        Meta(
            min_length=1,
            description="Id of the session that the broker keeps. No other client may use it.",
        ),
    ] = msgspec.field(name="mqtt.client_id")
    port: Annotated[
        Annotated[int, Meta(ge=1, le=65_535)] | None,
        Meta(description="Port of the broker. Unset: 1883, or 8883 with TLS."),
    ] = msgspec.field(name="mqtt.port", default=None)
    protocol: Annotated[Literal["5", "3.1.1"], Meta(description="Version of the MQTT protocol.")] = msgspec.field(
        name="mqtt.protocol", default="5"
    )
    username: Annotated[str | None, Meta(description="User to sign in as.")] = msgspec.field(
        name="mqtt.username", default=None
    )
    password: Annotated[str | None, Meta(description="Password of this user.")] = msgspec.field(
        name="mqtt.password", default=None
    )
    session_expiry_seconds: Annotated[
        int,
        Meta(ge=1, le=0xFFFFFFFF, description="Seconds that the broker keeps messages without a connected task."),
    ] = msgspec.field(name="mqtt.session_expiry_seconds", default=604_800)
    receive_maximum: Annotated[
        int,
        Meta(
            ge=1,
            le=MOST_IN_FLIGHT,
            description="Most unacknowledged messages; bounds a micro-batch.",
        ),
    ] = msgspec.field(name="mqtt.receive_maximum", default=10_000)
    keepalive: Annotated[
        int, Meta(ge=5, le=65_535, description="Seconds of silence before the broker drops a client.")
    ] = msgspec.field(name="mqtt.keepalive", default=60)
    tls: Annotated[bool, Meta(description="Whether to use TLS; mqtt.tls.ca.file implies true.")] = msgspec.field(
        name="mqtt.tls", default=False
    )
    tls_ca_file: Annotated[str | None, Meta(description="CA certificates for the broker. Unset: the system's.")] = (
        msgspec.field(name="mqtt.tls.ca.file", default=None)
    )
    tls_cert_file: Annotated[str | None, Meta(description="File with the client's certificate.")] = msgspec.field(
        name="mqtt.tls.cert.file", default=None
    )
    tls_key_file: Annotated[str | None, Meta(description="File with its key. Unset: in the certificate's file.")] = (
        msgspec.field(name="mqtt.tls.key.file", default=None)
    )

    def __post_init__(self) -> None:
        if not self.filters:
            raise OptionError(
                f"option 'mqtt.topics' names no topic. Given: {self.topics!r}", code="PYSTORM_INVALID_OPTION"
            )

    @property
    def filters(self) -> list[str]:
        """Topic filters of ``mqtt.topics``."""
        return distinct(self.topics)

    @property
    def has_tls(self) -> bool:
        """Whether TLS is used."""
        return self.tls or self.tls_ca_file is not None or self.tls_cert_file is not None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        return self.host, self.port or (8883 if self.has_tls else 1883)
