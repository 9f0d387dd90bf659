"""Topologies that call the service of ``testbed.effects_service``."""

import os
import signal

import aiohttp

from pystorm_source import AsyncBolt, Hopeless, Input, RetryLater, Topology
from pystorm_source.spouts import FilesSpout
from tests.markers import is_first


class Call(AsyncBolt):
    """The effect of each row, once, by its key. Kills its own process once if ``kill.marker`` names a file that is not
    there yet, at a row that ``kill.at`` ends."""

    outputs = ["line string"]
    exit_on_exception = False

    async def initialize(self, conf, context):
        timeout = aiohttp.ClientTimeout(total=5)
        self.session = aiohttp.ClientSession(
            conf["service.url"], connector=aiohttp.TCPConnector(limit=0), timeout=timeout
        )
        self.kill_at, self.marker = conf.get("kill.at", ""), conf.get("kill.marker", "")

    async def process(self, tup):
        key = self.idempotency_key(tup)
        async with self.limit("api"), self.session.post("/effects", headers={"Idempotency-Key": key}) as answer:
            if answer.status == 429:
                raise RetryLater(float(answer.headers["Retry-After"]))
            answer.raise_for_status()
            await answer.read()
        if self.kill_at and str(tup.values[0]).endswith(self.kill_at) and is_first(self.marker):
            os.kill(os.getpid(), signal.SIGKILL)
        self.done(tup)

    def done(self, tup):
        self.emit([str(tup.values[0])])

    async def cleanup(self):
        await self.session.close()


class CallOnly(Call):
    outputs = []

    def done(self, tup):
        if str(tup.values[0]) == "hopeless":
            raise Hopeless("never")


RETRIES = {"topology.max.spout.retries": 50, "topology.spout.retry.backoff.millis": 50}


class Lines(Topology):
    """A source: lines of files."""

    config = {**RETRIES, "topology.rate.limit": {"api": "200/s"}}
    lines = FilesSpout.spec()
    call = Call.spec(inputs=[lines])


class Rows(Topology):
    """An operator."""

    config = {**RETRIES, "topology.rate.limit": {"api": "200/s"}}
    rows = Input.spec(["line string"])
    call = Call.spec(inputs=[rows])


class Sink(Topology):
    config = {**RETRIES, "topology.rate.limit": {"api": "200/s"}}
    rows = Input.spec(["line string"])
    call = CallOnly.spec(inputs=[rows])
