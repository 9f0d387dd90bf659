"""One connection to an MQTT broker, turned by its caller: paho's own thread is not started."""

import logging
import select
import ssl
import time
from collections.abc import Callable
from typing import Any

from cython_core.routing.failure_kinds import RetryLater
from pystorm_source.errors import WorldError
from pystorm_source.errors.packages import package
from pystorm_source.spouts.mqtt_options import MqttOptions

PAUSE_SECONDS = 1.0
"""Until a broker that is down or busy is asked again. Less: it stays busy. More: a restart holds the query up."""
CONNECT_SECONDS = 5.0
"""Less: a slow network looks like an outage. More: no bolt gets a turn meanwhile."""
_BUSY = (0x88, 0x89, 0x97, 0x9F)
"""MQTT's reason codes for a broker that is unavailable or busy, and for quotas and rates that are exceeded."""


class MqttConnection:
    """Connects and subscribes. ``take`` gets each message; ``logger`` gets what the broker has not kept.

    Raises RetryLater if the broker is down, busy or does not answer, WorldError if it refuses the client, OptionError
    if paho-mqtt is not installed.

    Attributes:
        lost (str | None): why the connection has ended.
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
        self._connected: Any = None  # flags and reason code, once the broker has answered
        self._granted: Any = None  # reason codes of the subscriptions
        self._client = client = self._made(tls)
        client.on_connect, client.on_subscribe = self._on_connect, self._on_subscribe
        client.on_disconnect = self._on_disconnect
        client.on_message = lambda client, userdata, message: take(message)
        try:
            self._connect()
        except ssl.SSLCertVerificationError as error:
            raise self._refusal(str(error)) from None
        except (OSError, ValueError) as error:
            self.close()
            raise self.later(error) from None

    def read(self) -> None:
        """Takes a packet, if one is there."""
        error = self._client.loop_read()
        if error and self.lost is None:
            self.lost = str(error)

    def wait(self, seconds: float) -> bool:
        """Whether there is something to read; for so long at most. False if the connection has ended."""
        return self.lost is None and bool(select.select((self._client.socket(),), (), (), seconds)[0])

    def acknowledge(self, mid: int) -> None:
        self._client.ack(mid, 1)

    def keep_alive(self) -> None:
        """Sends what was not sent yet, and a ping if it is time for one."""
        end = time.monotonic() + CONNECT_SECONDS
        while self._client.want_write() and self.lost is None and time.monotonic() < end:
            select.select((), (self._client.socket(),), (), 0.1)
            self._client.loop_write()
        self._client.loop_misc()

    def close(self) -> None:
        """The broker keeps the session."""
        self._client.disconnect()
        self._client.loop_write()

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
            types = package("paho.mqtt.packettypes", "MqttSpout", "mqtt").PacketTypes
            asked = package("paho.mqtt.properties", "MqttSpout", "mqtt").Properties(types.CONNECT)
            asked.SessionExpiryInterval, asked.ReceiveMaximum = options.session_expiry_seconds, options.receive_maximum
            more = {"clean_start": False, "properties": asked}
        self._client.connect(*options.address, keepalive=options.keepalive, **more)
        flags, reason = self._answer("_connected")
        self._check([reason])
        # In a session that is kept, too: filters may be new. MQTT 3.1.1 would send all retained messages again.
        if self._is_v5 or not flags.session_present:
            self._client.subscribe([(each, self._how()) for each in options.filters])
            self._check(self._answer("_granted"))

    def _how(self) -> Any:
        """Of a subscription: QoS 1; retained messages come if it is new."""
        if not self._is_v5:
            return 1
        kind = package("paho.mqtt.subscribeoptions", "MqttSpout", "mqtt").SubscribeOptions
        return kind(qos=1, retainAsPublished=True, retainHandling=kind.RETAIN_SEND_IF_NEW_SUB)

    def _answer(self, name: str) -> Any:
        """What the broker answers. Messages may come before."""
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

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._connected = flags, reason
        if not reason.is_failure and not flags.session_present:
            self._log.warning(
                "the broker has no session of %s yet, or no longer: messages that came before are not read",
                self._options.client_id,
            )

    def _on_subscribe(self, client: Any, userdata: Any, mid: int, reasons: list[Any], properties: Any) -> None:
        self._granted = reasons

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        self.lost = str(reason)

    def _said(self, what: object) -> str:
        return "MQTT broker at {}:{}: {}".format(*self._options.address, what)

    def _refusal(self, what: str) -> WorldError:
        return WorldError(
            f"{self._said(what)}. See that user, password and certificates are right on every executor, and that the "
            f"broker lets the client {self._options.client_id!r} subscribe to these topics. Given: {self._options!r}",
            code="PYSTORM_EXTERNAL_FAILURE",
        )
