"""A queue on a real Redis, a stream with a consumer group, and the spouts that read it."""

import time
import uuid

from redis import Redis

from pystorm_source import QueueSpout, RetryLater, Topology

STREAM, GROUP = "orders", "spark"


class Queue:
    """What a test sees of it. Of another client: ``connection`` is never shared with a spout."""

    def __init__(self, url):
        self.redis = Redis.from_url(url)
        self.redis.xgroup_create(STREAM, GROUP, id="0", mkstream=True)

    def put(self, *numbers):
        for n in numbers:
            self.redis.xadd(STREAM, {"n": n})

    @property
    def waiting(self):
        return self.redis.xlen(STREAM)

    @property
    def received(self):
        """Of those, how many are received and not acknowledged."""
        return self.redis.xpending(STREAM, GROUP)["pending"]

    def busy(self, method, times):
        self.redis.set(f"busy {method}", times)

    def raises(self, method, times):
        """Instead of saying that it is busy."""
        self.redis.set("raises", 1)
        self.busy(method, times)

    @property
    def delivered_again(self):
        return int(self.redis.get("delivered again") or 0)

    def calls(self, method):
        return int(self.redis.get(f"calls {method}") or 0)


class StreamSpout(QueueSpout):
    """The ids of a stream stay the same when a message is delivered again."""

    outputs = ["n long"]
    lease_seconds = 5.0

    def initialize(self, conf, context):
        self.redis = Redis.from_url(conf["path"])
        self.consumer = uuid.uuid4().hex

    def counted(self, method):
        """Counts its calls, and is busy as often as the test has said."""
        self.redis.incr(f"calls {method}")
        if int(self.redis.get(f"busy {method}") or 0) > 0:
            self.redis.decr(f"busy {method}")
            if self.redis.exists("raises"):
                raise ConnectionAbortedError("gone")
            raise RetryLater(0.05, "busy")

    def receive(self, count):
        self.counted("receive")
        lease = int(self.lease_seconds * 1000)
        new = self.redis.xreadgroup(GROUP, self.consumer, {STREAM: ">"}, count=count)
        found = new[0][1] if new else []
        if not found:
            found = self.redis.xautoclaim(STREAM, GROUP, self.consumer, lease, count=count)[1]
            self.redis.incrby("delivered again", len(found))
        return [(id.decode(), {"n": int(fields[b"n"])}) for id, fields in found]

    def acknowledge(self, ids):
        self.counted("acknowledge")
        self.redis.xack(STREAM, GROUP, *ids)
        self.redis.xdel(STREAM, *ids)

    def extend(self, ids):
        self.counted("extend")
        self.redis.xclaim(STREAM, GROUP, self.consumer, 0, ids, justid=True)

    def release(self, ids):
        self.counted("release")
        self.redis.xclaim(STREAM, GROUP, "nobody", 0, ids, idle=3_600_000, justid=True)


class Orders(Topology):
    orders = StreamSpout.spec()


class ShortSpout(StreamSpout):
    """Its leases are over long before its micro-batch, for it takes one message at a time."""

    lease_seconds = 0.5
    receive_count = 1

    def receive(self, count):
        time.sleep(0.05)  # the queue is far away
        return super().receive(count)


class Short(Topology):
    orders = ShortSpout.spec()


class ForgetfulSpout(ShortSpout):
    """Its leases run out."""

    def extend(self, ids):
        pass


class ImpatientSpout(StreamSpout):
    lease_seconds = 0.5


class Impatient(Topology):
    orders = ImpatientSpout.spec()


class Forgetful(Topology):
    orders = ForgetfulSpout.spec()
