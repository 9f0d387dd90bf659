"""An HTTP/1.1 server that answers every GET behind some time, and does as little else as it can.

``http_server.py SECONDS`` answers each the same; ``http_server.py prices`` answers ``/NUMBER`` with a price: behind 50
ms, one in a hundred behind a second, and another one in a hundred with 503 the first time. ``/calls`` says how many
calls the second with most of them had since it was asked last.

Prints its ports and serves until its standard input ends. Several, as the connections that a port has not accepted yet
are limited.
"""

import asyncio
import json
import sys
from collections import deque

BODY = b'{"price": 42}'
PORTS = 8
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
SECONDS, LATE_SECONDS = 0.05, 1.0


class Answers(asyncio.Protocol):
    """One connection; a request arrives in one piece, as small ones do on a loopback."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.loop.call_later(self.seconds, self.answer, ANSWER)

    def answer(self, text: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(text)  # type: ignore[attr-defined]


class Calls:
    """What all connections have in common."""

    def __init__(self) -> None:
        self.failed: set[int] = set()
        self.recent: deque[float] = deque()
        self.most = 0

    def count(self, now: float) -> None:
        while self.recent and self.recent[0] <= now - 1:
            self.recent.popleft()
        self.recent.append(now)
        self.most = max(self.most, len(self.recent))

    def fails(self, number: int) -> bool:
        if number % 100 != 7 or number in self.failed:
            self.failed.discard(number)  # a number comes again in the next run
            return False
        self.failed.add(number)
        return True


class Prices(Answers):
    """One connection of a client that asks for prices."""

    def __init__(self, calls: Calls):
        super().__init__(SECONDS)
        self.calls = calls

    def data_received(self, data: bytes) -> None:
        path = data.split(b" ", 2)[1][1:]
        if path == b"calls":
            self.answer(_answer(b"200 OK", {"most": self.calls.most}))
            self.calls.most = 0
            return
        number = int(path)
        self.calls.count(self.loop.time())
        if self.calls.fails(number):
            text = _answer(b"503 Service Unavailable", {})
        else:
            text = _answer(b"200 OK", {"price": price(number)})
        self.loop.call_later(LATE_SECONDS if number % 100 == 13 else self.seconds, self.answer, text)


def price(number: int) -> int:
    return number * 7919 % 1000


def _answer(status: bytes, body: dict[str, int]) -> bytes:
    text = json.dumps(body).encode()
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(text)) + text


async def serve(what: str) -> None:
    """Until standard input ends."""
    loop = asyncio.get_running_loop()
    calls = Calls()
    ports = []
    for _ in range(PORTS):
        made = (lambda: Prices(calls)) if what == "prices" else (lambda: Answers(float(what)))
        server = await loop.create_server(made, "127.0.0.1", 0, backlog=4096)
        ports.append(server.sockets[0].getsockname()[1])
    print(*ports, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
