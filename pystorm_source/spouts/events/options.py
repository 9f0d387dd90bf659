"""Options of EventStreamSpout."""

from typing import Annotated

import msgspec
from msgspec import Meta

from pystorm_source.options import Options
from pystorm_source.options.authorization import check_one_authorization
from pystorm_source.options.http_address import check_address


class EventStreamOptions(Options, frozen=True, kw_only=True):
    """Options of EventStreamSpout; those of time-outs by the names of aiohttp."""

    further = (
        *("events.url", "events.token", "events.last_event_id"),
        *("events.auth.header.*", "events.header.*"),
        *("events.sock_connect", "events.sock_read", "events.tls.ca.file", "events.most.bytes"),
    )

    url: Annotated[str, Meta(description="Address of the stream.")] = msgspec.field(name="events.url")
    token: Annotated[str | None, Meta(description="Sent as a bearer token.")] = msgspec.field(
        name="events.token", default=None
    )
    last_event_id: Annotated[
        str, Meta(description="Id after which a new query begins. Empty: where the server begins.")
    ] = msgspec.field(name="events.last_event_id", default="")
    auth_headers: Annotated[
        dict[str, str] | None,
        Meta(description="Secret headers, such as events.auth.header.X-Api-Key; never shown."),
    ] = msgspec.field(name="events.auth.header.*", default=None)
    headers: Annotated[
        dict[str, str] | None, Meta(description="Further headers, such as events.header.Accept-Language.")
    ] = msgspec.field(name="events.header.*", default=None)
    sock_connect: Annotated[float, Meta(gt=0, le=600, description="Seconds that connecting may take.")] = msgspec.field(
        name="events.sock_connect", default=5.0
    )
    sock_read: Annotated[
        float, Meta(gt=0, le=86_400, description="Seconds without a byte before the spout connects again.")
    ] = msgspec.field(name="events.sock_read", default=60.0)
    tls_ca_file: Annotated[str | None, Meta(description="CA certificates for the server. Unset: the system's.")] = (
        msgspec.field(name="events.tls.ca.file", default=None)
    )
    most_bytes: Annotated[int, Meta(ge=1, le=1 << 30, description="Largest event; a larger one fails the query.")] = (
        msgspec.field(name="events.most.bytes", default=16 << 20)
    )

    def __post_init__(self) -> None:
        check_address("events.url", self.url, "set events.token or events.auth.header.*")
        if self.token is not None:
            check_one_authorization("events.token", "events.auth.header.", self.auth_headers)

    @property
    def all_headers(self) -> dict[str, str]:
        """Headers of a request, with the secret ones; as they are usually written: keys of options are lower case."""
        token = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        given = {**(self.headers or {}), **(self.auth_headers or {})}
        return {**{key.title(): value for key, value in given.items()}, **token}
