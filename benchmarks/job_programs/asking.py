"""Written by hand where a package has no limit: calls evenly apart, and another one for each that fails."""

import asyncio
import contextlib
import time

import aiohttp

TRIES = 5


class Asking:
    """Prices of a shop, at most so many calls a second."""

    def __init__(self, url, calls_per_second):
        self.url, self.apart, self.free_at = url, 1 / calls_per_second, 0.0
        self.session = None

    async def price(self, number):
        if self.session is None:  # needs a running loop
            self.session = aiohttp.ClientSession(self.url, connector=aiohttp.TCPConnector(limit=0))
        for _ in range(TRIES):
            now = time.monotonic()
            self.free_at = max(self.free_at, now) + self.apart
            await asyncio.sleep(self.free_at - now)
            with contextlib.suppress(aiohttp.ClientError):
                async with self.session.get(f"/{number}", raise_for_status=True) as answer:
                    return (await answer.json())["price"]
        raise ConnectionError(f"no price of {number}")
