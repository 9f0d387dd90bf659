"""Streams of a NATS server, as tests fill, trim and look at them."""

import uuid

import nats
from nats.js.api import StorageType

from pystorm_source.api.own_loop import OwnLoop


class NatsWorld:
    """A stream of its own, of this server: ``stream``, with the subjects ``stream.*``."""

    def __init__(self, url, stream=None, **login):
        self.url, self.stream = url, stream or uuid.uuid4().hex
        self._loop, self._login = OwnLoop(), login

    def ask(self, call):
        """What ``call(js)`` answers."""

        async def asked():
            client = await nats.connect(self.url, **self._login)
            try:
                return await call(client.jetstream())
            finally:
                await client.close()

        return self._loop.run(asked())

    def make(self, **settings):
        settings = {"storage": StorageType.FILE, **settings}
        self.ask(lambda js: js.add_stream(name=self.stream, subjects=[f"{self.stream}.*"], **settings))

    def delete(self):
        self.ask(lambda js: js.delete_stream(self.stream))

    def put(self, *numbers, subject="a", headers=None):
        async def put(js):
            for n in numbers:
                await js.publish(f"{self.stream}.{subject}", str(n).encode(), headers=headers)

        self.ask(put)

    def take_out(self, *sequences):
        async def delete(js):
            for sequence in sequences:
                await js.delete_msg(self.stream, sequence)

        self.ask(delete)

    def trim(self, sequence):
        """Removes what is before it."""
        self.ask(lambda js: js.purge_stream(self.stream, seq=sequence))

    def time_of(self, sequence):
        return self.ask(lambda js: js.get_msg(self.stream, seq=sequence)).time

    def consumers(self):
        return [each.name for each in self.ask(lambda js: js.consumers_info(self.stream))]

    def forget_consumers(self):
        """As the server does after a while, or when it restarts."""

        async def delete(js):
            for each in await js.consumers_info(self.stream):
                await js.delete_consumer(self.stream, each.name)

        self.ask(delete)

    def close(self):
        self._loop.close()
