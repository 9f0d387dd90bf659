"""A local HTTP server that knows two prices, one of which it sometimes fails to tell, or tells too late."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from aiohttp import web

PRICES = {"apple": 0.5, "pear": 0.75}


class PriceServer:
    """``url``; ``asked``: item → requests. ``failing`` and ``silent``: items for which it answers 503, or nothing."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: dict[str, int] = {}
        self.failing: set[str] = set()
        self.silent: set[str] = set()
        self.most = self._now = 0

    async def answer(self, request: web.Request) -> web.Response:
        item = request.match_info["item"]
        self.asked[item] = self.asked.get(item, 0) + 1
        self._now += 1
        self.most = max(self.most, self._now)
        try:
            await asyncio.sleep(3600 if item in self.silent else 0.05)
        finally:
            self._now -= 1
        if item in self.failing:
            return web.Response(status=503)
        if item not in PRICES:
            return web.Response(status=404)
        return web.json_response({"price": PRICES[item]})

    async def serve(self, ready: threading.Event, over: asyncio.Event) -> None:
        """Until ``over``."""
        application = web.Application()
        application.router.add_get("/prices/{item}", self.answer)
        runner = web.AppRunner(application, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        host, port = runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        ready.set()
        await over.wait()
        await runner.cleanup()


@contextmanager
def price_server() -> Iterator[PriceServer]:
    """A server in a thread of its own."""
    server, ready = PriceServer(), threading.Event()
    loop, over = asyncio.new_event_loop(), asyncio.Event()
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve(ready, over)), daemon=True)
    thread.start()
    try:
        assert ready.wait(10)
        yield server
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(10)
        loop.close()
