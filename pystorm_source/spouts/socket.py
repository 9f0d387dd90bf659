"""Lines from a TCP server, like Spark's ``socket`` source; with a journal, lines that Spark can replay."""

import codecs
import contextlib
import logging
import socket
from collections import deque
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.spec_config import spec_config
from pystorm_source.api.spout import Spout
from pystorm_source.clock import Clock, SystemClock
from pystorm_source.errors import OptionError
from pystorm_source.options import Options, parse

logger = logging.getLogger("pystorm.socket")

READ_BYTES = 1 << 16
MOST_PAUSE = 30.0
"""Seconds between two attempts to connect, at most."""


class SocketOptions(Options, frozen=True, kw_only=True):
    """Options of SocketSpout; Spark's socket source has the first two."""

    further = (
        *("socket.encoding", "socket.encoding.errors"),
        *("socket.connect.timeout.millis", "socket.reconnect.millis", "socket.max.line.bytes"),
    )

    host: Annotated[str, Meta(min_length=1, description="Name or address to connect to.")]
    port: Annotated[int, Meta(ge=1, le=65_535, description="Port to connect to.")]
    encoding: Annotated[str, Meta(description="Encoding of lines, which must end with byte 0x0A.")] = msgspec.field(
        name="socket.encoding", default="utf-8"
    )
    encoding_errors: Annotated[
        Literal["replace", "skip"],
        Meta(
            description="For invalid bytes. replace: they become U+FFFD. skip: the line is counted, logged and left "
            "out."
        ),
    ] = msgspec.field(name="socket.encoding.errors", default="replace")
    connect_timeout_millis: Annotated[
        int, Meta(ge=1, le=600_000, description="Milliseconds for one attempt to connect.")
    ] = msgspec.field(name="socket.connect.timeout.millis", default=1000)
    reconnect_millis: Annotated[
        int,
        Meta(
            ge=1,
            le=600_000,
            description="Milliseconds before reconnecting. Each failure doubles them, up to 30 s.",
        ),
    ] = msgspec.field(name="socket.reconnect.millis", default=100)
    max_line_bytes: Annotated[
        int, Meta(ge=16, le=1 << 30, description="Longest line in bytes; longer ones become several tuples.")
    ] = msgspec.field(name="socket.max.line.bytes", default=1 << 20)

    def __post_init__(self) -> None:
        try:
            fits = "\n".encode(codecs.lookup(self.encoding).name) == b"\n"
        except (LookupError, ValueError):  # the latter: a NUL in the name
            fits = False
        if not fits:
            raise OptionError(
                "option 'socket.encoding' is a text encoding that Python knows and in which a line ends with the byte "
                f"0x0A, such as utf-8, latin-1 or cp1252. Given: {self.encoding!r}",
                code="PYSTORM_INVALID_OPTION",
            )


class SocketSpout(Spout):
    """Lines from a TCP server in the field ``value``, without their end (LF or CRLF). Like Spark's socket source.

    Empty lines count. When the server closes, what came behind the last line end is a line, and the spout connects
    again; a server that is not there yet is tried again and again. Lines are read while a micro-batch listens; in
    between they wait in the connection.

    Trap: nothing asks the server to repeat a line. With ``journal.path`` a line is kept from the moment it is in the
    journal; what a killed process had received but not yet journaled is lost.

    Example:
        >>> from pystorm_source.spouts import SocketSpout
        >>> class Lines(Topology):
        ...     lines = SocketSpout.spec(host="localhost", port=9999)
        >>> Lines.lines.config
        {'host': 'localhost', 'port': 9999}
    """

    Options = SocketOptions
    outputs = ["value string"]
    clock: Clock = SystemClock()

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        host: str | None = None,
        port: int | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``.
            config (dict): as in ``Spout.spec``; further options such as ``{"socket.encoding": "latin-1"}``.
            host (str): host to connect to, by name or address. Defaults to the reader's option.
            port (int): its port, 1 to 65535. Defaults to the reader's option.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        return super().spec(name=name, par=par, config=spec_config(cls.config, config, {"host": host, "port": port}))

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        self._options = parse(SocketOptions, conf)
        self._connection: socket.socket | None = None
        self._lines: deque[bytes] = deque()
        self._rest = b""
        self._pause = self._options.reconnect_millis / 1000
        self._next_attempt = self.clock.monotonic()

    def next_tuple(self) -> Any:
        if not self._lines:
            self._receive()
        while self._lines:
            text = self._text(self._lines.popleft())
            if text is not None:
                self.emit((text,))
                return

    def cleanup(self) -> None:
        self._disconnect()

    def _receive(self) -> None:
        if self._connection is None and not self._connected():
            return
        assert self._connection is not None
        try:
            data = self._connection.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError as error:
            logger.warning("%s: the connection broke (%s); the last line may be torn", self._server, error)
            data = b""
        if data:
            self._pause = self._options.reconnect_millis / 1000
            self._cut(self._rest + data)
            return
        if self._rest:
            self._lines.append(self._rest)
            self._rest = b""
        self._disconnect()

    def _cut(self, data: bytes) -> None:
        *lines, self._rest = data.split(b"\n")
        most = self._options.max_line_bytes
        for line in lines:
            self._lines.extend(line[at : at + most] for at in range(0, len(line) or 1, most))
        while len(self._rest) > most:  # else a line without an end would fill the memory
            self._lines.append(self._rest[:most])
            self._rest = self._rest[most:]

    def _text(self, line: bytes) -> str | None:
        line = line.removesuffix(b"\r")
        errors = "replace" if self._options.encoding_errors == "replace" else "strict"
        try:
            return line.decode(self._options.encoding, errors)
        except UnicodeDecodeError as error:
            self.report_metric("socket.lines.skipped", 1)
            logger.warning("%s: a line of %d bytes is skipped: %s", self._server, len(line), error.reason)
            return None

    def _connected(self) -> bool:
        now = self.clock.monotonic()
        if now < self._next_attempt:
            return False
        self._next_attempt = now + self._pause
        self._pause = min(self._pause * 2, MOST_PAUSE)
        address = (self._options.host, self._options.port)
        try:
            self._connection = socket.create_connection(address, self._options.connect_timeout_millis / 1000)
        except OSError as error:
            logger.warning("%s: cannot connect (%s); trying again", self._server, error)
            return False
        self._connection.setblocking(False)
        return True

    def _disconnect(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(OSError):
                self._connection.close()
        self._connection = None
        self._next_attempt = self.clock.monotonic() + self._pause

    @property
    def _server(self) -> str:
        return f"{self._options.host}:{self._options.port}"
