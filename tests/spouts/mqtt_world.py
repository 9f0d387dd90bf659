"""Topics of an MQTT broker, and who publishes there."""

import time
import uuid

from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties


class MqttWorld:
    """Topics below ``name``, and who publishes there."""

    def __init__(self, server, login=None, tls=None, name=None):
        self.server, self.name = server, name or uuid.uuid4().hex
        self.client = Client(CallbackAPIVersion.VERSION2, protocol=MQTTv5)
        if login:
            self.client.username_pw_set(*login)
        if tls:
            self.client.tls_set_context(tls)
        self.connect()

    def connect(self):
        self.client.connect("127.0.0.1", self.server.port)
        self.client.loop_start()

    def put(self, *values, topic="a", qos=1, retain=False, **properties):
        more = None
        if properties:
            more = Properties(PacketTypes.PUBLISH)
            more.UserProperty = list(properties.items())
        infos = [
            self.client.publish(f"{self.name}/{topic}", str(value), qos=qos, retain=retain, properties=more)
            for value in values
        ]
        for info in infos:
            info.wait_for_publish(20)

    def put_until(self, is_seen, seconds=60, **more):
        """Until one has come through: the broker keeps nothing before the first subscription."""
        end = time.monotonic() + seconds
        while not is_seen():
            assert time.monotonic() < end, "nothing came through"
            self.put(1, **more)

    def close(self):
        self.client.disconnect()
        self.client.loop_stop()
