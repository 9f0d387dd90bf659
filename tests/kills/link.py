"""A way to a server that lives on while its clients see it die: connections are reset, and new ones are refused."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any

from testbed.ports import free_port


class Link:
    """``port`` leads to port ``to`` of the loopback interface, from ``start`` until ``kill``, and again."""

    def __init__(self, to: int):
        self.port, self._to = free_port(), to
        self._loop = asyncio.new_event_loop()
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def start(self) -> None:
        self._run(self._started())

    def kill(self) -> None:
        """What was sent may or may not have arrived, on both sides."""
        self._run(self._killed())

    def freeze(self) -> None:
        """What was sent arrives after ``thaw``."""
        self._loop.call_soon_threadsafe(self._flows.clear)

    def thaw(self) -> None:
        self._loop.call_soon_threadsafe(self._flows.set)

    def close(self) -> None:
        self.kill()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self, task: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(task, self._loop).result(20)

    async def _started(self) -> None:
        self._server = await asyncio.start_server(self._joined, "127.0.0.1", self.port)

    async def _killed(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        for writer in self._writers:
            writer.transport.abort()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._to)
        both = {writer, far_writer}
        self._writers |= both
        try:
            await asyncio.gather(self._copied(reader, far_writer), self._copied(far_reader, writer))
        finally:
            self._writers -= both

    async def _copied(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(1 << 16):
                await self._flows.wait()
                target.write(data)
                await target.drain()
        except OSError:
            pass
        target.close()
