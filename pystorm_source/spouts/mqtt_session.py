"""A session of an MQTT broker, on one connection at a time: what was received, and what may be acknowledged."""

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pystorm_source.errors.packages import package
from pystorm_source.spouts.mqtt_connection import MqttConnection
from pystorm_source.spouts.mqtt_options import MqttOptions
from pystorm_source.spouts.tls_files import tls_context

FIRST_SECONDS = 1.0
"""Wait for the first message of a connection. Less: availableNow may end before the broker has sent what it keeps."""


class Receipt(NamedTuple):
    """A message, the connection that brought it, and its packet identifier there, 0 if it is not acknowledged."""

    connection: int
    mid: int
    message: Any


class MqttSession:
    """Raises OptionError if paho-mqtt is not installed, or a TLS file cannot be read.

    If the broker has no session, packet identifiers start again, so ``may_begin`` is asked first. If it returns False,
    no session begins, and ``receive`` returns nothing.

    ``receive`` connects if it must, and raises as ``MqttConnection``. Acknowledgements are sent in the order of
    receipt, as MQTT requires, and not after their connection is lost: the broker delivers its messages again.
    """

    def __init__(self, options: MqttOptions, logger: logging.Logger, may_begin: Callable[[], bool] = lambda: True):
        self._options, self._log, self._may_begin = options, logger, may_begin
        self._connection: MqttConnection | None = None
        self._number = 0  # of the connection
        self._inbox: deque[Receipt] = deque()  # received and not given
        self._unacked: deque[int] = deque()  # packet identifiers, in order of receipt
        self._done: set[int] = set()  # those of them that may be acknowledged
        package("paho.mqtt.client", "MqttSpout", "mqtt")
        self.tls = tls_context("mqtt.tls", options) if options.has_tls else None

    def receive(self, count: int, seconds: float) -> list[Receipt]:
        """Returns at most so many messages that are there. Waits at most so long for the first one."""
        connection = self._connection
        is_idle = connection is not None and connection.is_idle
        while True:
            if connection is None or connection.lost is not None:
                connection, is_idle, seconds = self._connected(), False, FIRST_SECONDS
                if connection is None:
                    return []
            self._read(connection, count, seconds)
            if connection.lost is None:
                return [self._inbox.popleft() for _ in range(min(count, len(self._inbox)))]
            self.close()  # what it has brought comes again, and another process may have it by now
            if not is_idle:
                raise connection.later(connection.lost)

    def _connected(self) -> MqttConnection | None:
        self.close()
        self._number += 1
        connection = MqttConnection(self._options, self.tls, self._take, self._log)
        if not connection.has_session and not self._may_begin():
            connection.close(is_over=True)
            return None
        connection.subscribe()
        self._connection = connection
        return connection

    def acknowledge(self, receipts: Iterable[Receipt]) -> None:
        """Sends what can be sent in order."""
        self._done.update(each.mid for each in receipts if each.connection == self._number and each.mid)
        while self._connection is not None and self._unacked and self._unacked[0] in self._done:
            mid = self._unacked.popleft()
            self._done.discard(mid)
            self._connection.acknowledge(mid)
        self.keep_alive()

    def keep_alive(self) -> None:
        """Sends a ping if it is time for one."""
        if self._connection is not None:
            self._connection.keep_alive()

    def close(self) -> None:
        """The broker keeps the session, and what was not acknowledged."""
        connection, self._connection = self._connection, None
        self._inbox.clear()
        self._unacked.clear()
        self._done.clear()
        if connection is not None:
            connection.close()

    def _read(self, connection: MqttConnection, count: int, seconds: float) -> None:
        """Nothing beyond the receive maximum, which mosquitto 2.0 does not always keep itself."""
        end, most = time.monotonic() + seconds, self._options.receive_maximum
        while len(self._inbox) < count and len(self._unacked) < most:
            connection.read()
            if not connection.wait(0.0 if self._inbox else max(0.0, end - time.monotonic())):
                break
        connection.keep_alive()

    def _take(self, message: Any) -> None:
        mid = message.mid if message.qos else 0
        if mid:
            self._unacked.append(mid)
        self._inbox.append(Receipt(self._number, mid, message))
