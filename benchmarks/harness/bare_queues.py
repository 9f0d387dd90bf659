"""Peers of ``sources``: the clients in a loop, and in the plainest streaming source of Spark's Python API.

Imported by Spark's Python processes: imports nothing of the engine.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from threading import Event
from typing import Any

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader

PAGE = 1000
"""Entries per request to Redis, on all sides."""
STREAMS = ("a", "b")
JETSTREAM = "benchmark"
MQTT_IN_FLIGHT = 10_000
"""Of MqttSpout. The broker sends no more before the first of them is acknowledged."""
Row = tuple[Any, ...]


def sqs_client(url: str) -> Any:
    import boto3

    keys = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    return boto3.client("sqs", endpoint_url=url, region_name="us-east-1", **keys)


def delete(client: Any, queue: str, handles: Sequence[str]) -> None:
    for at in range(0, len(handles), 10):
        entries = [{"Id": str(n), "ReceiptHandle": handle} for n, handle in enumerate(handles[at : at + 10])]
        client.delete_message_batch(QueueUrl=queue, Entries=entries)


def drain_sqs(url: str, queue: str, _: int) -> int:
    """Takes and deletes messages, ten at a time, until the queue is empty; returns how many."""
    client, taken = sqs_client(url), 0
    while found := client.receive_message(QueueUrl=queue, MaxNumberOfMessages=10).get("Messages"):
        delete(client, queue, [each["ReceiptHandle"] for each in found])
        taken += len([each["Body"] for each in found])
    return taken


def drain_redis(url: str, _: str, number: int) -> int:
    """Reads one stream to its end; returns how many entries."""
    from redis import Redis

    client, cursor, taken = Redis.from_url(url), b"0-0", 0
    while found := client.xrange(STREAMS[number], min=b"(" + cursor, count=PAGE):
        cursor = found[-1][0]
        taken += len(found)
    return taken


async def nats_consumer(js: Any, stream: str, start: int) -> Any:
    """Returns a consumer from this sequence on that acknowledges nothing."""
    from nats.js.api import AckPolicy, DeliverPolicy

    begin = {"deliver_policy": DeliverPolicy.BY_START_SEQUENCE, "opt_start_seq": start}
    made = await js.add_consumer(stream, ack_policy=AckPolicy.NONE, inactive_threshold=60.0, **begin)
    return await js.pull_subscribe_bind(made.name, stream)


def drain_nats(url: str, rows: str, number: int) -> int:
    """Reads one half of the stream; returns how many messages."""
    import nats

    async def drained() -> int:
        client, half, taken = await nats.connect(url), int(rows) // 2, 0
        consumer = await nats_consumer(client.jetstream(), JETSTREAM, 1 + number * half)
        while taken < half:
            taken += len([each.data for each in await consumer.fetch(min(PAGE, half - taken))])
        await client.close()
        return taken

    return asyncio.run(drained())


def mqtt_session(port: int, name: str, topic: str, *, manual: bool = False) -> tuple[Any, deque[Any]]:
    """A started client of a session that the broker keeps, subscribed to the topic, and the deque of what comes.

    ``manual``: acknowledges nothing by itself.
    """
    from paho.mqtt.client import CallbackAPIVersion, Client, MQTTv5
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    came: deque[Any] = deque()
    subscribed = Event()
    client = Client(CallbackAPIVersion.VERSION2, client_id=name, protocol=MQTTv5, manual_ack=manual)
    client.on_message = lambda client, userdata, message: came.append(message)
    client.on_subscribe = lambda *_: subscribed.set()
    client.on_connect = lambda client, *_: client.subscribe(topic, qos=1)
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval, properties.ReceiveMaximum = 3600, MQTT_IN_FLIGHT
    client.connect("127.0.0.1", port, clean_start=False, properties=properties)
    client.loop_start()
    if not subscribed.wait(20):
        raise RuntimeError(f"no subscription to {topic}")
    return client, came


def left(client: Any) -> None:
    """Ends a client; the broker keeps its session."""
    client.disconnect()
    client.loop_stop()


def drain_mqtt(port: str, queue: str, number: int) -> int:
    """Takes the messages of one of two sessions, each acknowledged as it comes; how many. ``queue``: session, which is
    also the topic, and how many."""
    session, half = queue.split()
    client, came = mqtt_session(int(port), f"{session}-{number}", f"{session}/{number}")
    while len(came) < int(half):
        time.sleep(0.001)
    left(client)
    return len([message.payload for message in came])


def in_two_processes(drain: Callable[[str, str, int], int], url: str, queue: str, rows: int) -> float:
    """Returns rows per second, from when both have started to when both are done."""
    context = get_context("spawn")
    ready, ended = context.Barrier(2), context.Queue()
    processes = [context.Process(target=_drained, args=(drain, url, queue, n, ready, ended)) for n in range(2)]
    for process in processes:
        process.start()
    spans = [ended.get(timeout=300) for _ in processes]
    for process in processes:
        process.join()
    if sum(taken for taken, _, _ in spans) != rows:
        raise RuntimeError(f"{[taken for taken, _, _ in spans]} rows instead of {rows}")
    return rows / (max(end for _, _, end in spans) - min(start for _, start, _ in spans))


def _drained(drain: Callable[[str, str, int], int], url: str, queue: str, number: int, ready: Any, ended: Any) -> None:
    import boto3  # noqa: F401  not part of what is measured
    import nats  # noqa: F401
    import paho.mqtt.client  # noqa: F401
    import redis  # noqa: F401

    ready.wait(60)
    began = time.monotonic()
    taken = drain(url, queue, number)
    ended.put((taken, began, time.monotonic()))


class MqttReader(SimpleDataSourceStreamReader):
    """Up to ``step`` messages a micro-batch, acknowledged when it is committed."""

    def __init__(self, options: Any):
        self.port, self.session, self.step = int(options["url"]), options["queue"].split()[0], int(options["step"])
        self.client: Any = None
        self.taken: list[Any] = []

    def initialOffset(self) -> dict[str, int]:
        return {"n": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[Row], dict[str, int]]:
        if self.client is None:
            self.client, self.came = mqtt_session(self.port, self.session, f"{self.session}/#", manual=True)
        rows: list[Row] = []
        end = time.monotonic() + 0.5
        while len(rows) < self.step and time.monotonic() < end:
            if not self.came:
                time.sleep(0.001)
                continue
            message = self.came.popleft()
            rows.append((message.topic, message.payload))
            self.taken.append(message)
        return iter(rows), {"n": start["n"] + len(rows)}

    def commit(self, end: dict[str, int]) -> None:
        taken, self.taken = self.taken, []
        for message in taken:
            self.client.ack(message.mid, message.qos)


class BareMqtt(DataSource):
    """``format("bare_mqtt")``; options ``url``, ``queue`` and ``step``."""

    @classmethod
    def name(cls) -> str:
        return "bare_mqtt"

    def schema(self) -> str:
        return "topic string, payload binary"

    def simpleStreamReader(self, schema: object) -> SimpleDataSourceStreamReader:
        return MqttReader(self.options)


class SqsReader(SimpleDataSourceStreamReader):
    """Up to ``step`` messages per micro-batch, deleted when it is committed."""

    def __init__(self, options: Any):
        self.url, self.queue, self.step = options["url"], options["queue"], int(options["step"])
        self.handles: list[str] = []
        self.client: Any = None

    def initialOffset(self) -> dict[str, int]:
        return {"n": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[Row], dict[str, int]]:
        self.client = self.client or sqs_client(self.url)
        rows: list[Row] = []
        while len(rows) < self.step:
            found = self.client.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10).get("Messages", [])
            if not found:
                break
            rows += [(each["Body"],) for each in found]
            self.handles += [each["ReceiptHandle"] for each in found]
        return iter(rows), {"n": start["n"] + len(rows)}

    def commit(self, end: dict[str, int]) -> None:
        handles, self.handles = self.handles, []
        delete(self.client, self.queue, handles)


class RedisReader(SimpleDataSourceStreamReader):
    """Up to ``step`` entries per micro-batch."""

    def __init__(self, options: Any):
        self.url, self.step = options["url"], int(options["step"])
        self.client: Any = None

    def initialOffset(self) -> dict[str, str]:
        return dict.fromkeys(STREAMS, "0-0")

    def read(self, start: dict[str, str]) -> tuple[Iterator[Row], dict[str, str]]:
        from redis import Redis

        self.client = self.client or Redis.from_url(self.url, decode_responses=True)
        rows: list[Row] = []
        end, open_ = dict(start), set(STREAMS)
        while open_ and len(rows) < self.step:
            for stream in sorted(open_):
                found = self.client.xrange(stream, min=f"({end[stream]}", count=PAGE)
                rows += [(stream, id, fields) for id, fields in found]
                if found:
                    end[stream] = found[-1][0]
                else:
                    open_.discard(stream)
        return iter(rows), end


class NatsReader(SimpleDataSourceStreamReader):
    """Up to ``step`` messages per micro-batch."""

    def __init__(self, options: Any):
        self.url, self.step = options["url"], int(options["step"])
        self.loop = self.consumer = self.client = None

    def initialOffset(self) -> dict[str, int]:
        return {"n": 0}

    def read(self, start: dict[str, int]) -> tuple[Iterator[Row], dict[str, int]]:
        self.loop: Any = self.loop or asyncio.new_event_loop()
        rows = self.loop.run_until_complete(self._read(start["n"]))
        return iter(rows), {"n": start["n"] + len(rows)}

    async def _read(self, start: int) -> list[Row]:
        import nats

        if self.consumer is None:
            self.client = await nats.connect(self.url)
            self.consumer: Any = await nats_consumer(self.client.jetstream(), JETSTREAM, start + 1)
        rows: list[Row] = []
        while len(rows) < self.step:
            try:
                found = await self.consumer.fetch(min(PAGE, self.step - len(rows)), timeout=0.5)
            except nats.errors.TimeoutError:
                break
            rows += [(each.metadata.sequence.stream, each.data) for each in found]
        return rows


class BareNats(DataSource):
    """``format("bare_nats")``; options ``url`` and ``step``."""

    @classmethod
    def name(cls) -> str:
        return "bare_nats"

    def schema(self) -> str:
        return "sequence long, data binary"

    def simpleStreamReader(self, schema: object) -> SimpleDataSourceStreamReader:
        return NatsReader(self.options)


class BareSqs(DataSource):
    """``format("bare_sqs")``; options ``url``, ``queue`` and ``step``."""

    @classmethod
    def name(cls) -> str:
        return "bare_sqs"

    def schema(self) -> str:
        return "body string"

    def simpleStreamReader(self, schema: object) -> SimpleDataSourceStreamReader:
        return SqsReader(self.options)


class BareRedis(DataSource):
    """``format("bare_redis")``; options ``url`` and ``step``."""

    @classmethod
    def name(cls) -> str:
        return "bare_redis"

    def schema(self) -> str:
        return "stream string, id string, fields map<string,string>"

    def simpleStreamReader(self, schema: object) -> SimpleDataSourceStreamReader:
        return RedisReader(self.options)
