"""An HTTP/1.1 server that answers every GET after a fixed time, and does as little else as possible.

``http_server.py SECONDS`` prints its ports and serves until its standard input ends. It has several ports because each
port limits the connections that it has not accepted yet.
"""

import asyncio
import sys

BODY = b'{"price": 42}'
PORTS = 8
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)


class Answers(asyncio.Protocol):
    """One connection; a request arrives in one piece, as small ones do on a loopback."""

    def __init__(self, seconds: float):
        self.seconds = seconds
        self.loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.loop.call_later(self.seconds, self.answer)

    def answer(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(ANSWER)  # type: ignore[attr-defined]


async def serve(seconds: float) -> None:
    """Serves until standard input ends."""
    loop = asyncio.get_running_loop()
    ports = []
    for _ in range(PORTS):
        server = await loop.create_server(lambda: Answers(seconds), "127.0.0.1", 0, backlog=4096)
        ports.append(server.sockets[0].getsockname()[1])
    print(*ports, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(float(sys.argv[1])))
