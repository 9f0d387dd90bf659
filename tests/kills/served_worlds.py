"""Sources whose servers are processes that keep their data on disk, and are killed."""

import logging
import os
import random
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
from redis import Redis
from redis.exceptions import ResponseError

from pystorm_source.options import parse
from pystorm_source.spouts.mqtt_options import MqttOptions
from pystorm_source.spouts.mqtt_session import MqttSession
from testbed.mosquitto_server import mosquitto_server
from testbed.nats_server import nats_server
from testbed.postgres_server import postgres_server
from tests.kills.source_topologies import text
from tests.kills.source_world import World
from tests.spouts.mqtt_world import MqttWorld
from tests.spouts.nats_world import NatsWorld
from tests.spouts.postgres.shop import LOGICAL, Shop
from tests.states.redis_process import redis_process


class ServedWorld(World):
    """A server with child processes, or without."""

    @property
    def pid(self) -> int:
        return int(self.server.pid)

    def freeze(self) -> None:
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        self._send(signal.SIGCONT)

    def _send(self, how: signal.Signals) -> None:
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        for pid in [self.pid, *map(int, children)]:
            with suppress(ProcessLookupError):
                os.kill(pid, how)


class NatsStreamWorld(ServedWorld):
    topology = "Stream"
    is_journaled = False

    def open(self) -> None:
        self.server = self.held.enter_context(nats_server(self.folder / "nats"))
        self.stream = NatsWorld(self.server.url, "rows", allow_reconnect=False, connect_timeout=2)
        self.held.callback(self.stream.close)
        self.stream.make()
        self.options |= {"nats.servers": self.server.url, "nats.stream": "rows"}

    def put(self, ids: Sequence[int]) -> None:
        async def put(js: Any) -> None:
            for n in ids:  # a known id makes no second message
                await js.publish("rows.a", f"{n}:{text(n)}".encode(), headers={"Nats-Msg-Id": str(n)})

        self.stream.ask(put)


class RedisWorld(ServedWorld):
    topology = "Entries"

    def open(self) -> None:
        (self.folder / "redis").mkdir()
        self.server = self.held.enter_context(redis_process(self.folder / "redis"))
        self.redis = Redis.from_url(self.server.url)
        self.options |= {"redis.url": self.server.url, "redis.streams": "rows", "redis.count": 15}

    @property
    def pid(self) -> int:
        return int(self.server.process.pid)

    def put(self, ids: Sequence[int]) -> None:
        for n in ids:
            try:
                self.redis.xadd("rows", {"n": n, "text": text(n)}, id=f"{n}-0")
            except ResponseError as error:
                if "equal or smaller" not in str(error):  # it is there: its answer was lost
                    raise


class MqttTopicWorld(ServedWorld):
    """mosquitto confirms messages before they are on disk: the feeder waits while it ends. If rows ``may_repeat``, it
    is killed some time after it wrote its sessions: what it has delivered since comes again, without DUP."""

    topology = "Payloads"
    is_paused = True

    def open(self) -> None:
        self.server = self.held.enter_context(mosquitto_server(self.folder / "mosquitto"))
        self.options |= {"mqtt.host": "127.0.0.1", "mqtt.port": self.server.port, "mqtt.topics": "rows/#"}
        self.options["mqtt.client_id"] = "kills"
        self.may_repeat = self.chance.random() < 0.5
        if self.may_repeat or self.chance.random() < 0.5:
            self.options["mqtt.receive_maximum"] = 30  # the broker keeps back what it has written
        self.subscribe()
        self.topic = MqttWorld(self.server, name="rows")
        self.held.callback(self.topic.close)

    def subscribe(self) -> None:
        """Begins the spout's session: the broker keeps nothing before."""
        options = {name: value for name, value in self.options.items() if name.startswith("mqtt.")}
        session = MqttSession(parse(MqttOptions, options), logging.getLogger(__name__))
        session.receive(0, 0.0)
        session.close()

    def put(self, ids: Sequence[int]) -> None:
        while not self.topic.client.is_connected():  # else it says that it failed, and publishes later all the same
            time.sleep(0.05)
        sent = [self.topic.client.publish("rows/a", f"{n}:{text(n)}", qos=1) for n in ids]
        for each in sent:
            each.wait_for_publish(60)
            assert each.is_published()

    def kill(self) -> None:
        if not self.may_repeat:
            self.server.stop()
            return
        self.server.save()
        time.sleep(3 * self.chance.random())
        self.server.kill()


class ChangesWorld(ServedWorld):
    topology = "Changes"
    is_journaled = False

    def open(self) -> None:
        self.server = self.held.enter_context(postgres_server(LOGICAL))
        self.shop = Shop(self.server, psycopg.connect(self.server.place, autocommit=True), "orders")
        self.options |= self.shop.options(maxOffsetsPerTrigger=6000, spout__poll__seconds="0.05")
        del self.options["topology"]

    def put(self, ids: Sequence[int]) -> None:
        if self.shop.connection.closed:
            self.shop.connection = psycopg.connect(self.server.place, autocommit=True)
        with self.shop.connection.cursor() as cursor:
            values = [(n, text(n)) for n in ids]
            cursor.executemany("INSERT INTO orders VALUES (%s, %s) ON CONFLICT DO NOTHING", values)


class KeyedWorld(ChangesWorld):
    """Keys are a sequence's; transactions overlap, and commit in any order."""

    def open(self) -> None:
        self.server = self.held.enter_context(postgres_server())
        self.connections: list[Any] = []
        with psycopg.connect(self.server.place, autocommit=True) as connection:
            connection.execute(
                "CREATE TABLE orders (key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id int UNIQUE, item text)"
            )
        self.options |= {"postgres.dsn": self.server.place, "postgres.tables": "orders", "postgres.key": "key"}

    def put(self, ids: Sequence[int]) -> None:
        if not self.connections or any(each.closed for each in self.connections):
            self.connections = [psycopg.connect(self.server.place) for _ in range(3)]
        for n in ids:
            self.connections[n % 3].execute(
                "INSERT INTO orders (id, item) VALUES (%s, %s) ON CONFLICT (id) DO NOTHING", (n, text(n))
            )
        for each in random.sample(self.connections, 3):
            time.sleep(0.02)
            each.commit()
