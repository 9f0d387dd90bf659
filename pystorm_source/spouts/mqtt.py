"""Messages of an MQTT broker, in a session that it keeps."""

import hashlib
import itertools
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa

from pystorm_source.api.component_spec import ComponentSpec
from pystorm_source.api.queue_spout import QueueSpout
from pystorm_source.api.spec_config import spec_config
from pystorm_source.errors import OptionError
from pystorm_source.options import parse
from pystorm_source.options.names import joined
from pystorm_source.spouts.mqtt_options import MOST_IN_FLIGHT, MqttOptions
from pystorm_source.spouts.mqtt_session import MqttSession, Receipt
from pystorm_source.types.arrow import field_type

LEAST_REMEMBERED = 10_000
"""Messages, or twice the receive maximum if that is more. mosquitto 2.0 sends more than the maximum after a
reconnection; if it then ends before it reads the acknowledgements, it delivers all of them again. Fewer: second rows.
More: larger notes of each micro-batch."""
WAIT_SECONDS = 0.1
"""Wait at an empty session. Less: a burst takes more calls. More: no bolt gets a turn meanwhile."""
_Id = tuple[Any, Receipt]  # key and receipt


class MqttSpout(QueueSpout):
    """The messages of MQTT topics, by QoS 1. Needs ``journal.path``, and paho-mqtt on every executor.

    The broker keeps a session for ``mqtt.client_id``, even while no task is connected. A message is acknowledged
    (PUBACK, in the order of receipt) when its row is in the journal; until then the broker delivers it again. MQTT has
    no ids: a message that is delivered again is known by its DUP flag, packet identifier, topic and payload, among the
    last 10,000 messages, or twice ``mqtt.receive_maximum`` if that is more.

    Messages that were published with QoS 2 arrive with QoS 1. If a task is killed, it loses messages of QoS 0.
    ``MqttOptions`` has the options. A subclass may leave out fields of ``outputs``, and declare ``payload string`` to
    have UTF-8 decoded; U+FFFD replaces invalid bytes.

    Raises:
        OptionError: paho-mqtt is not installed, or an invalid option.
        WorldError: the broker refuses the client or a topic.

    Example:
        >>> from pystorm_source.spouts import MqttSpout
        >>> class Plant(Topology):
        ...     sensors = MqttSpout.spec(host="localhost", topics=["plant/+/temperature"], client_id="spark-plant")
        >>> Plant.sensors.config["mqtt.topics"]
        'plant/+/temperature'
    """

    Options = MqttOptions
    outputs = [
        *("topic string", "payload binary", "qos int", "retain boolean"),
        "properties map<string,string>",
    ]
    receive_count = 1000
    _pystorm_apart = ("mqtt.host", "mqtt.port", "mqtt.client_id")

    @classmethod
    def spec(
        cls,
        name: str | None = None,
        par: int | dict[str, int] | None = None,
        config: dict[str, Any] | None = None,
        *,
        host: str | None = None,
        topics: str | Sequence[str] | None = None,
        client_id: str | None = None,
    ) -> ComponentSpec:
        """This spout for a Topology; arguments win over the reader's options.

        Args:
            name (str): as in ``Spout.spec``.
            par (int | dict[str, int]): as in ``Spout.spec``.
            config (dict): as in ``Spout.spec``; further options such as ``{"mqtt.username": "spark"}``.
            host (str): ``mqtt.host``. Defaults to the reader's option.
            topics (str | list[str]): ``mqtt.topics``: topic filters. Defaults to the reader's option.
            client_id (str): ``mqtt.client_id``: name of the session. Defaults to the reader's option.

        Returns:
            ComponentSpec: what an attribute of the Topology is set to.
        """
        given = {"mqtt.host": host, "mqtt.topics": joined(topics), "mqtt.client_id": client_id}
        return super().spec(name=name, par=par, config=spec_config(cls.config, config, given))

    def initialize(self, conf: dict[str, Any], context: dict[str, Any]) -> None:
        """Reads the options.

        Raises:
            OptionError: wrong options, or ``par`` is more than 1.
        """
        options = parse(MqttOptions, conf)
        par = list(context.get("task->component", {}).values()).count(str(self.component_name))
        if par > 1:
            raise OptionError(
                f"{type(self).__name__}: one instance reads a session, as a broker lets one client in by a name: "
                "leave par out, and declare several spouts with a shared topic and an mqtt.client_id each. "
                f"Given: par={par!r}, mqtt.client_id={options.client_id!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        self.remembered = min(MOST_IN_FLIGHT, max(LEAST_REMEMBERED, 2 * options.receive_maximum))
        self.lease_seconds = float(options.keepalive)  # pings, while bolts take their time
        self._session = MqttSession(options, self._any_logger(), self._pystorm_forgets)
        self._resends = options.protocol == "3.1.1"  # retained messages, with each subscription
        self._copies: Counter[bytes] = Counter()  # of them, on the connection of this number
        self._connection = 0
        self._run, self._numbers = uuid.uuid4().hex, itertools.count()
        stream = next(each for each in self._streams() if each.name == "default")
        ddls = dict(zip(stream.fields, stream.types, strict=True))
        self._decodes = field_type(ddls.get("payload") or "binary", "field 'payload'") == pa.string()

    def receive(self, count: int) -> Iterable[tuple[_Id, dict[str, Any]]]:
        found = self._session.receive(count, WAIT_SECONDS)
        return [((self._key(each), each), self._row(each.message)) for each in found]

    def acknowledge(self, ids: Sequence[_Id]) -> None:
        self._session.acknowledge([receipt for _, receipt in ids])

    def extend(self, ids: Sequence[_Id]) -> None:
        self._session.keep_alive()

    def release(self, ids: Sequence[_Id]) -> None:
        """The broker delivers again what was not acknowledged, but not on the same connection."""
        self._session.close()

    def message_key(self, id: _Id) -> Any:
        return id[0]

    def _pystorm_receive_failed(self) -> None:
        # A subclass has raised behind ``super().receive``. The broker delivers again on another connection only.
        self._session.close()

    def _pystorm_resume(self, notes: str | None) -> None:
        # Another process has polled since, and the broker has closed this connection. Its buffer may still hold
        # messages without DUP that the other process has journaled: they would be taken for new ones.
        self._session.close()
        super()._pystorm_resume(notes)

    def cleanup(self) -> None:
        self._session.close()

    def _key(self, receipt: Receipt) -> Any:
        message = receipt.message
        hashed = hashlib.blake2b(message.payload, digest_size=16)
        hashed.update(message.topic.encode())
        digest = hashed.digest()
        if self._resends and message.retain:
            if receipt.connection != self._connection:
                self._connection, self._copies = receipt.connection, Counter()
            self._copies[digest] += 1
            return ["retained", self._copies[digest], digest]
        if not receipt.mid:  # it is never delivered again
            return [self._run, next(self._numbers)]
        key = [receipt.mid, digest]
        if not message.dup:  # MQTT may use the identifier of one that was acknowledged for another one
            self._pystorm_is_new(key)
        return key

    def _row(self, message: Any) -> dict[str, Any]:
        properties = getattr(message.properties, "UserProperty", None)
        return {
            "topic": message.topic,
            "payload": str(message.payload, "utf-8", "replace") if self._decodes else bytes(message.payload),
            "qos": message.qos,
            "retain": message.retain,
            "properties": dict(properties) if properties else {},
        }
