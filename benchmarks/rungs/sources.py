"""Rows per second of ready-made spouts without offsets through Spark, and how often an idle query polls.

    idle-sqs, idle-redis, idle-nats   requests per ``poll_seconds`` of a query whose source is empty
    sqs                    SqsSpout → noop sink           against bare and simple
    redis                  RedisStreamSpout → noop sink   against bare and simple
    nats                   NatsSpout → noop sink          against bare and simple
    mqtt                   MqttSpout → noop sink          against bare and simple
    bare                   the client in a loop, in two processes
    simple                 the client in a ``SimpleDataSourceStreamReader`` → noop sink

SQS is moto's, one Python process that takes most of the time itself, so there are few messages. Redis has two streams.
Servers, Spark and Python share the cores. A query's figure counts from the start of its first micro-batch with rows to
the end of the last; its first run starts processes and is not counted.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import nats
from redis import Redis
from redis.exceptions import RedisError

from benchmarks.harness.bare_queues import (
    JETSTREAM,
    STREAMS,
    BareMqtt,
    BareNats,
    BareRedis,
    BareSqs,
    drain_mqtt,
    drain_nats,
    drain_redis,
    drain_sqs,
    in_two_processes,
    left,
    mqtt_session,
    sqs_client,
)
from benchmarks.harness.ladder import Settings
from benchmarks.harness.record import ROOT, Record, record
from benchmarks.harness.spark_session import spark_session
from pystorm_source import read_stream
from pystorm_source.api import Topology
from pystorm_source.spouts import MqttSpout, NatsSpout, RedisStreamSpout, SqsSpout
from testbed.mosquitto_server import mosquitto_server
from testbed.nats_server import nats_server
from testbed.ports import free_port
from testbed.sqs_server import CREDENTIALS, REGION, sqs_server
from testbed.uncontrolled import UNCONTROLLED

SQS_ROWS, REDIS_ROWS, NATS_ROWS, MQTT_ROWS = 400, 200_000, 200_000, 20_000
"""More SQS messages would take minutes to send: moto's time per message grows with their number. paho-mqtt takes 0.2 ms
of CPU time for each message of MQTT 5."""
MICRO_BATCHES = 4
"""Micro-batches per query. Fewer: the end of the last one weighs too much. More: Spark's overhead for each does."""
IDLE_SECONDS = 10.0
ASKED = {"bare": 0.7, "simple": 3.0}
PEERS = {"bare": "the client in two processes", "simple": "the client in a SimpleDataSourceStreamReader"}


class BodySpout(SqsSpout):
    """Emits the peer's column."""

    outputs = ["body string"]


class Messages(Topology):
    messages = BodySpout.spec()


class Entries(Topology):
    entries = RedisStreamSpout.spec()


class SequenceSpout(NatsSpout):
    """Emits the peer's columns."""

    outputs = ["sequence long", "data binary"]


class Sequences(Topology):
    messages = SequenceSpout.spec()


class TopicSpout(MqttSpout):
    """The columns of the peer."""

    outputs = ["topic string", "payload binary"]


class Topics(Topology):
    messages = TopicSpout.spec()


class Queue:
    """SQS in a separate process."""

    drain = staticmethod(drain_sqs)
    simple = BareSqs.name()

    def __init__(self, url: str, rows: int):
        self.url, self.rows = url, rows
        self._client = sqs_client(url)
        self.queue = self._made()

    def _made(self) -> str:
        name = f"benchmark-{uuid.uuid4().hex}"
        return str(self._client.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "600"})["QueueUrl"])

    def fill(self) -> None:
        self.queue = self._made()  # SQS purges a queue at most once a minute
        for at in range(0, self.rows, 10):
            entries = [{"Id": str(n), "MessageBody": f"message {at + n}"} for n in range(10)]
            self._client.send_message_batch(QueueUrl=self.queue, Entries=entries)

    def frame(self, spark: Any, folder: Path, step: int) -> Any:
        options = {"sqs.queue": self.queue, "sqs.endpoint_url": self.url, "sqs.region_name": REGION}
        return _frame(spark, Messages, folder, step, options)


class Streams:
    """Two streams of a Redis."""

    drain = staticmethod(drain_redis)
    simple = BareRedis.name()
    queue = ""

    def __init__(self, url: str, rows: int):
        self.url, self.rows = url, rows

    def fill(self) -> None:
        with Redis.from_url(self.url) as client:
            if sum(map(client.xlen, STREAMS)) == self.rows:
                return  # reading takes nothing away
            for at in range(0, self.rows, 2000):
                with client.pipeline(transaction=False) as pipe:
                    for n in range(at, min(at + 2000, self.rows)):
                        pipe.xadd(STREAMS[n % 2], {"item": f"item {n}", "quantity": n})
                    pipe.execute()

    def frame(self, spark: Any, folder: Path, step: int) -> Any:
        options = {"redis.url": self.url, "redis.streams": ",".join(STREAMS)}
        return _frame(spark, Entries, folder, step, options)


class Jetstream:
    """A stream of a NATS server, read by two tasks."""

    drain = staticmethod(drain_nats)
    simple = BareNats.name()

    def __init__(self, url: str, rows: int):
        self.url, self.rows, self.queue = url, rows, str(rows)
        self._is_full = False
        asyncio.run(self._put(0))

    def fill(self) -> None:
        if not self._is_full:  # reading takes nothing away
            asyncio.run(self._put(self.rows))
        self._is_full = True

    async def _put(self, rows: int) -> None:
        client = await nats.connect(self.url)
        js = client.jetstream()
        await js.add_stream(name=JETSTREAM, subjects=[JETSTREAM])
        for n in range(rows):
            await client.publish(JETSTREAM, b"message %d" % n)
            if n % 2000 == 0:
                await client.flush()
        await client.flush()
        while (await js.stream_info(JETSTREAM)).state.messages < rows:
            await asyncio.sleep(0.05)
        await client.close()

    def frame(self, spark: Any, folder: Path, step: int) -> Any:
        options = {"nats.servers": self.url, "nats.stream": JETSTREAM, "maxOffsetsPerTrigger": step, "minPartitions": 2}
        return read_stream(spark, Sequences, options={**options, **UNCONTROLLED})


class Sessions:
    """Sessions of an MQTT broker with the same messages: one of both topics, and one of each for the bare clients."""

    drain = staticmethod(drain_mqtt)
    simple = BareMqtt.name()

    def __init__(self, port: int, rows: int):
        self.url, self.rows = str(port), rows
        self.name = self.queue = ""

    def fill(self) -> None:
        # Topics of its own: otherwise all sessions of earlier fills get each message, too.
        self.name = name = f"benchmark-{uuid.uuid4().hex}"
        self.queue = f"{name} {self.rows // 2}"
        for session, topic in ((name, "#"), (f"{name}-0", "0"), (f"{name}-1", "1")):
            left(mqtt_session(int(self.url), session, f"{name}/{topic}")[0])
        client, _ = mqtt_session(int(self.url), f"{name}-full", f"{name}-full")
        sent = [client.publish(f"{name}/{n % 2}", b"message %d" % n, qos=1) for n in range(self.rows)]
        for each in sent:
            each.wait_for_publish(60)
        left(client)

    def frame(self, spark: Any, folder: Path, step: int) -> Any:
        options = {"mqtt.host": "127.0.0.1", "mqtt.port": self.url, "mqtt.topics": f"{self.name}/#"}
        return _frame(spark, Topics, folder, step, {**options, "mqtt.client_id": self.name})


def _frame(spark: Any, topology: type[Topology], folder: Path, step: int, options: dict[str, Any]) -> Any:
    options = {"journal.path": str(folder / "journal"), "maxOffsetsPerTrigger": step, **options}
    return read_stream(spark, topology, options={**options, **UNCONTROLLED})


def run(settings: Settings) -> Iterator[Record]:
    """Measures all sides of each case in turn, then the idle queries."""
    shrink = 10 if settings.quick else 1
    os.environ.update(CREDENTIALS)  # before Spark's processes start
    with spark_session() as (spark, folder), redis_url(folder) as redis:
        for source in (BareSqs, BareRedis, BareNats, BareMqtt):
            spark.dataSource.register(source)
        if settings.wants("sqs"):
            with sqs_url() as url:
                yield from throughput("sqs", Queue(url, SQS_ROWS // shrink), spark, folder, settings)
        if settings.wants("redis"):
            yield from throughput("redis", Streams(redis, REDIS_ROWS // shrink), spark, folder, settings)
        if settings.wants("nats"):
            with nats_server(Path(tempfile.mkdtemp(dir=folder))) as server:
                yield from throughput("nats", Jetstream(server.url, NATS_ROWS // shrink), spark, folder, settings)
        if settings.wants("mqtt"):
            with mosquitto_server(Path(tempfile.mkdtemp(dir=folder))) as broker:
                yield from throughput("mqtt", Sessions(broker.port, MQTT_ROWS // shrink), spark, folder, settings)
        for name, idle in (("idle-sqs", idle_sqs), ("idle-redis", idle_redis), ("idle-nats", idle_nats)):
            if settings.wants(name):
                seconds = IDLE_SECONDS / (4 if settings.quick else 1)
                calls = [idle(spark, folder, redis, seconds) for _ in range(settings.runs_of(3))]
                yield record("sources", name, calls, "requests/poll", asked=1.1, less_is_better=True)


def throughput(name: str, world: Any, spark: Any, folder: Path, settings: Settings) -> Iterator[Record]:
    sides: dict[str, Callable[[], float]] = {"ours": lambda: of_query(spark, world, folder, world.frame)}
    if settings.peers:
        sides["simple"] = lambda: of_query(spark, world, folder, simple)
        sides["bare"] = lambda: in_two_processes(world.drain, world.url, world.queue, world.rows)

    def simple(spark: Any, folder: Path, step: int) -> Any:
        reader = spark.readStream.format(world.simple).option("url", world.url).option("queue", world.queue)
        return reader.option("step", step).load()

    seen: dict[str, list[float]] = defaultdict(list)
    for number in range(1 + settings.runs_of(5)):
        for side, measured in sides.items():
            world.fill()
            rate = measured()
            if number > 0:
                seen[side].append(rate)
    for side, asked in ASKED.items() if settings.peers else (("", None),):
        yield record(
            "sources",
            f"{name} / {side}" if side else name,
            seen["ours"],
            "rows/s",
            peer=PEERS.get(side),
            peer_values=seen.get(side, ()),
            asked=asked,
            rows=world.rows,
        )


def of_query(spark: Any, world: Any, folder: Path, frame: Callable[[Any, Path, int], Any]) -> float:
    """Returns rows per second of a new query that reads everything."""
    place = Path(tempfile.mkdtemp(dir=folder))
    writer = frame(spark, place, world.rows // MICRO_BATCHES).writeStream.format("noop")
    query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
    try:
        done = waited(query, lambda: _with_rows(query, world.rows))
    finally:
        query.stop()
    last = done[-1]
    return world.rows / (_seconds(last) + last["durationMs"]["triggerExecution"] / 1000 - _seconds(done[0]))


def _with_rows(query: Any, rows: int) -> list[Any]:
    done = [each for each in query.recentProgress if each["numInputRows"] > 0]
    return done if sum(each["numInputRows"] for each in done) >= rows else []


def waited(query: Any, is_done: Callable[[], Any]) -> Any:
    """Waits until ``is_done`` is true and returns its value. Raises what the query raises."""
    end = time.monotonic() + 300
    while not (value := is_done()):
        if query.exception() is not None:
            raise query.exception()
        if time.monotonic() > end:
            raise RuntimeError(f"not done in 5 minutes: {query.lastProgress}")
        time.sleep(0.1)
    return value


def idle_sqs(spark: Any, folder: Path, redis: str, seconds: float) -> float:
    with sqs_server() as server:
        world = Queue(server.url, 0)
        return idle(spark, world, folder, lambda: server.calls["ReceiveMessage"], seconds)


def idle_redis(spark: Any, folder: Path, redis: str, seconds: float) -> float:
    """Measures per stream; all streams are empty."""
    with Redis.from_url(redis) as client:
        client.flushall()
        world = Streams(redis, 0)
        calls = lambda: client.info("commandstats").get("cmdstat_xrange", {"calls": 0})["calls"]  # noqa: E731
        return idle(spark, world, folder, calls, seconds) / len(STREAMS)


def idle_nats(spark: Any, folder: Path, redis: str, seconds: float) -> float:
    port = free_port()
    with nats_server(Path(tempfile.mkdtemp(dir=folder)), http=f"127.0.0.1:{port}") as server:

        def calls() -> int:
            with urlopen(f"http://127.0.0.1:{port}/jsz") as answer:
                return int(json.load(answer)["api"]["total"])

        return idle(spark, Jetstream(server.url, 0), folder, calls, seconds)


def idle(spark: Any, world: Any, folder: Path, calls: Callable[[], int], seconds: float) -> float:
    """Returns the requests per ``poll_seconds``, which is 1, from the third on."""
    place = Path(tempfile.mkdtemp(dir=folder))
    writer = world.frame(spark, place, 1000).writeStream.format("noop")
    before = calls()
    query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
    try:
        waited(query, lambda: calls() >= before + 2)
        begun, began = calls(), time.monotonic()
        time.sleep(seconds)
        return (calls() - begun) / (time.monotonic() - began)
    finally:
        query.stop()


@contextmanager
def sqs_url() -> Iterator[str]:
    command = [sys.executable, "-m", "testbed.sqs_server"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()


@contextmanager
def redis_url(folder: Path) -> Iterator[str]:
    port = free_port()
    settings = {"port": port, "bind": "127.0.0.1", "save": "", "dir": folder}
    parts = [str(part) for key, value in settings.items() for part in (f"--{key}", value)]
    with subprocess.Popen(["redis-server", *parts], stdout=subprocess.DEVNULL) as process, Redis(port=port) as client:
        end = time.monotonic() + 20
        while True:
            try:
                client.ping()
                break
            except RedisError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)
        try:
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()


def _seconds(progress: Any) -> float:
    return datetime.fromisoformat(progress["timestamp"]).timestamp()
