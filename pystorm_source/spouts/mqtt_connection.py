"""One connection to an MQTT broker, turned by its caller: paho's own thread is not started."""

import logging
import select
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import WorldError
from pystorm_source.errors.packages import package
from pystorm_source.spouts.mqtt_options import MqttOptions

PAUSE_SECONDS = 1.0
"""Until a broker that is down or busy is asked again. Less: it stays busy. More: a restart delays the query."""
CONNECT_SECONDS = 5.0
"""Less: a slow network looks like an outage. More: no bolt gets a turn meanwhile."""
CLOSE_SECONDS = 1.0
"""Until a broker has taken the last acknowledgements. Less: a slow one delivers them again. More: the end of a task is
held up by a broker that hangs."""
TAKEN_OVER = 0x8E
"""MQTT's reason code for a session that another client has taken."""
_BUSY = (0x88, 0x89, 0x97, 0x9F)
"""MQTT's reason codes for a broker that is unavailable or busy, and for quotas and rates that are exceeded."""


class MqttConnection:
    """Connects; ``subscribe`` is next. ``take`` gets each message; ``logger`` gets what the broker has not kept.

    Raises RetryLater if the broker is down, busy or does not answer, WorldError if it refuses the client, OptionError
    if paho-mqtt is not installed.

    Attributes:
        lost (str | None): why the connection has ended.
        has_session (bool): whether the broker has kept the session.
    """

    def __init__(
        self,
        options: MqttOptions,
        tls: ssl.SSLContext | None,
        take: Callable[[Any], None],
        logger: logging.Logger,
    ):
        self._options, self._log = options, logger
        self._is_v5 = options.protocol == "5"
        self.lost: str | None = None
        self.has_session = False
        self._used = time.monotonic()
        self._connected: Any = None  # flags and reason code, once the broker has answered
        self._granted: Any = None  # reason codes of the subscriptions, until they are checked
        self._has_acked = self._has_answered = False
        self._client = client = self._made(tls)
        client.on_connect, client.on_subscribe = self._on_connect, self._on_subscribe
        client.on_disconnect, client.on_unsubscribe = self._on_disconnect, self._on_unsubscribe
        client.on_message = lambda client, userdata, message: take(message)
        with self._raises_later():
            self._connect()

    @property
    def is_idle(self) -> bool:
        """Whether the broker may have dropped it because it was idle: then a new one is worth a try at once."""
        return time.monotonic() - self._used > self._options.keepalive

    def subscribe(self) -> None:
        """Subscribes, even in a kept session: filters may be new, or it may have no filters. The answer comes after the
        kept messages, and is checked then."""
        if not self.has_session:
            self._log.warning(
                "the broker has no session of %s yet, or no longer: messages that came before are not read",
                self._options.client_id,
            )
        try:
            self._client.subscribe([(each, self._how()) for each in self._options.filters])
        except ValueError as error:
            self.close()
            raise self._refusal(str(error)) from None
        if not self.has_session:
            with self._raises_later():
                self._check_granted(self._answer("_granted"))

    def read(self) -> None:
        """Takes a packet, if one is there."""
        error = self._client.loop_read()
        if error and self.lost is None:
            self.lost = str(error)
        if self.has_session and self._granted is not None:
            granted, self._granted = self._granted, None
            self._check_granted(granted)

    def wait(self, seconds: float) -> bool:
        """Whether there is something to read; for so long at most. False if the connection has ended."""
        if self.lost is not None:
            return False
        socket = self._client.socket()
        # TLS is decrypted by record: more may be pending although the socket itself is empty.
        if isinstance(socket, ssl.SSLSocket) and socket.pending():
            return True
        return bool(select.select((socket,), (), (), seconds)[0])

    def acknowledge(self, mid: int) -> None:
        self._client.ack(mid, 1)
        self._has_acked = True

    def keep_alive(self) -> None:
        """Sends what was not sent yet, and a ping if it is time for one."""
        self._used = time.monotonic()
        end = self._used + CONNECT_SECONDS
        while self._client.want_write() and self.lost is None and time.monotonic() < end:
            select.select((), (self._client.socket(),), (), 0.1)
            self._client.loop_write()
        self._client.loop_misc()

    def close(self, is_over: bool = False) -> None:
        """The broker keeps the session; with MQTT 5 not if it ``is_over``."""
        if self._has_acked and self.lost is None:
            self._await_acknowledged()
        has_end = is_over and self._is_v5
        self._client.disconnect(None, self._properties("DISCONNECT", SessionExpiryInterval=0) if has_end else None)
        self._client.loop_write()

    def _await_acknowledged(self) -> None:
        """Waits until the broker has taken all acknowledgements: if the connection is closed first, it may drop those
        that it has not read. MQTT answers no acknowledgement, but it answers packets in order: this one ends a
        subscription that does not exist."""
        self._has_acked = False
        self._client.on_message = None  # what still comes stays in the session
        end = time.monotonic() + CLOSE_SECONDS
        try:
            self._client.unsubscribe("pystorm-source/none")
            while not self._has_answered and self.lost is None and time.monotonic() < end:
                self.keep_alive()
                self.wait(0.05)
                self.read()
        except (OSError, ValueError) as error:
            self.lost = str(error)

    def later(self, why: object) -> RetryLater:
        return RetryLater(PAUSE_SECONDS, self._said(why))

    def _made(self, tls: ssl.SSLContext | None) -> Any:
        options, mqtt = self._options, package("paho.mqtt.client", "MqttSpout", "mqtt")
        more: dict[str, Any] = {} if self._is_v5 else {"clean_session": False}
        client = mqtt.Client(
            mqtt.CallbackAPIVersion.VERSION2,
            options.client_id,
            protocol=mqtt.MQTTv5 if self._is_v5 else mqtt.MQTTv311,
            reconnect_on_failure=False,
            manual_ack=True,
            **more,
        )
        client.connect_timeout = CONNECT_SECONDS
        if options.username is not None:
            client.username_pw_set(options.username, options.password)
        if tls is not None:
            client.tls_set_context(tls)
        return client

    def _connect(self) -> None:
        options, more = self._options, {}
        if self._is_v5:
            expiry, most = options.session_expiry_seconds, options.receive_maximum
            asked = self._properties("CONNECT", SessionExpiryInterval=expiry, ReceiveMaximum=most)
            more = {"clean_start": False, "properties": asked}
        self._client.connect(*options.address, keepalive=options.keepalive, **more)
        flags, reason = self._answer("_connected")
        self._check([reason])
        self.has_session = flags.session_present

    def _properties(self, packet: str, **values: int) -> Any:
        types = package("paho.mqtt.packettypes", "MqttSpout", "mqtt").PacketTypes
        found = package("paho.mqtt.properties", "MqttSpout", "mqtt").Properties(getattr(types, packet))
        for name, value in values.items():
            setattr(found, name, value)
        return found

    @contextmanager
    def _raises_later(self) -> Iterator[None]:
        try:
            yield
        except ssl.SSLCertVerificationError as error:
            raise self._refusal(str(error)) from None
        except (OSError, ValueError) as error:
            self.close()
            raise self.later(error) from None

    def _how(self) -> Any:
        """Options of a subscription: QoS 1 and, with MQTT 5, retained messages only if it is new."""
        if not self._is_v5:
            return 1
        kind = package("paho.mqtt.subscribeoptions", "MqttSpout", "mqtt").SubscribeOptions
        return kind(qos=1, retainAsPublished=True, retainHandling=kind.RETAIN_SEND_IF_NEW_SUB)

    def _answer(self, name: str) -> Any:
        """What the broker answers."""
        end = time.monotonic() + CONNECT_SECONDS
        while (found := getattr(self, name)) is None:
            if self.lost is not None or time.monotonic() > end:
                raise OSError(self.lost or "the broker does not answer")
            self.keep_alive()
            self.wait(0.05)
            self.read()
        return found

    def _check(self, reasons: list[Any]) -> None:
        for reason in reasons:
            if reason.is_failure:
                self.close()
                raise self.later(reason) if reason.value in _BUSY else self._refusal(str(reason))

    def _check_granted(self, reasons: list[Any]) -> None:
        self._check(reasons)
        if any(reason.value == 0 for reason in reasons):
            self.close()
            raise self._refusal("it grants QoS 0 only, which loses messages")

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._connected = flags, reason

    def _on_subscribe(self, client: Any, userdata: Any, mid: int, reasons: list[Any], properties: Any) -> None:
        self._granted = reasons

    def _on_unsubscribe(self, *_: Any) -> None:
        self._has_answered = True

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if self.lost is None:
            # mosquitto 2.0 does not say that another client has taken the session.
            sure = "" if reason.value == TAKEN_OVER else "if that comes again, "
            client = self._options.client_id
            self.lost = f"{reason}; {sure}another client has mqtt.client_id {client!r}, too: every spout needs its own"

    def _said(self, what: object) -> str:
        return "MQTT broker at {}:{}: {}".format(*self._options.address, what)

    def _refusal(self, what: str) -> WorldError:
        return WorldError(
            f"{self._said(what)}. See that user, password and certificates are right on every executor, and that the "
            f"broker lets the client {self._options.client_id!r} subscribe to these topics. Given: {self._options!r}",
            code="PYSTORM_EXTERNAL_FAILURE",
        )
