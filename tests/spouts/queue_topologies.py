"""Topologies that read a queue or a stream, for tests that name them by text."""

import os
import signal
import time
from pathlib import Path

from pystorm_source import Topology
from pystorm_source.spouts import MqttSpout, NatsSpout, RedisStreamSpout, SqsSpout
from testbed.sqs_server import CREDENTIALS


def die_once(marker):
    """Kills this process as a crash does, the first time."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


class Messages(Topology):
    messages = SqsSpout.spec()


class BodySpout(SqsSpout):
    outputs = ["body string"]


class Bodies(Topology):
    messages = BodySpout.spec()


class ForgetfulSpout(BodySpout):
    """Its leases run out, for its micro-batch lasts longer."""

    receive_count = 10

    def extend(self, ids):
        pass


class Forgetful(Topology):
    messages = ForgetfulSpout.spec()


class LastingSpout(BodySpout):
    """Its leases are over long before its micro-batch, for it takes one message at a time."""

    receive_count = 1

    def receive(self, count):
        time.sleep(0.1)  # the queue is far away
        found = list(super().receive(count))
        assert all(row["receive_count"] == 1 for _, row in found), "delivered again"
        return found


class Lasting(Topology):
    messages = LastingSpout.spec()


class KilledSqsSpout(BodySpout):
    """Killed once between the journal and the acknowledgement."""

    def initialize(self, conf, context):
        os.environ.update(CREDENTIALS)  # Spark's processes have the environment of a session that may be older
        super().initialize(conf, context)
        self.marker = conf["path"]

    def acknowledge(self, ids):
        die_once(self.marker)
        super().acknowledge(ids)


class KilledSqs(Topology):
    messages = KilledSqsSpout.spec()


class Entries(Topology):
    entries = RedisStreamSpout.spec()


class OrderSpout(RedisStreamSpout):
    outputs = ["stream string", "n long", "at timestamp", "raw binary", "text string", "missing int"]
    exit_on_exception = False


class Orders(Topology):
    orders = OrderSpout.spec()


class NumberSpout(RedisStreamSpout):
    outputs = ["n long"]


class Numbers(Topology):
    numbers = NumberSpout.spec()


class KilledRedisSpout(NumberSpout):
    """Killed once when its micro-batch is in the journal."""

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.marker = conf["path"]

    def _pystorm_batch_ended(self, is_journaled):
        if is_journaled and self.has_read:
            die_once(self.marker)

    has_read = False

    def read(self, cursor, limit):
        page = super().read(cursor, limit)
        self.has_read = self.has_read or bool(page[0])
        return page


class KilledRedis(Topology):
    numbers = KilledRedisSpout.spec()


class Sequences(Topology):
    """By column."""

    messages = NatsSpout.spec()


class TextSpout(NatsSpout):
    outputs = ["sequence long", "data string"]


class Texts(Topology):
    messages = TextSpout.spec()


class KilledNatsSpout(TextSpout):
    """Read by tuple, and killed once in the middle of a range."""

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.marker = conf["path"]

    def emit(self, tup, tup_id=None, **more):
        if tup_id == 20:
            die_once(self.marker)
        return super().emit(tup, tup_id, **more)


class KilledNats(Topology):
    messages = KilledNatsSpout.spec()


class Readings(Topology):
    messages = MqttSpout.spec()


class PayloadSpout(MqttSpout):
    outputs = ["payload string"]


class Payloads(Topology):
    messages = PayloadSpout.spec()


class SharedPayloads(Topology):
    """Two sessions that share a topic."""

    one = PayloadSpout.spec(client_id="one")
    two = PayloadSpout.spec(client_id="two")


class SameSession(Topology):
    """Two spouts with the reader's mqtt.client_id."""

    one = PayloadSpout.spec()
    two = PayloadSpout.spec(name="two")


class KilledMqttSpout(PayloadSpout):
    """Killed once between the journal and the acknowledgement."""

    def initialize(self, conf, context):
        super().initialize(conf, context)
        self.marker = conf["path"]

    def acknowledge(self, ids):
        die_once(self.marker)
        super().acknowledge(ids)


class KilledMqtt(Topology):
    messages = KilledMqttSpout.spec()
