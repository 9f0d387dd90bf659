"""A way to a server that is slow, or that has TLS which it ends itself."""

import asyncio
import ssl
import threading
from contextlib import contextmanager

from testbed.ports import free_port


@contextmanager
def link(to, rate=None, pem=None):
    """The port of one end. ``rate``: bytes per second that come from the server at port ``to``; ``pem``: for TLS, in
    records as large as they may be."""
    port, loop = free_port(), asyncio.new_event_loop()
    context = None
    if pem:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)

    async def copied(source, target, rate):
        try:
            while data := await source.read(16_000):
                target.write(data)
                await target.drain()
                await asyncio.sleep(len(data) / rate if rate else 0.01)
        except OSError:
            pass
        target.close()

    async def joined(reader, writer):
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", to)
        await asyncio.gather(copied(reader, far_writer, None), copied(far_reader, writer, rate))

    server = loop.run_until_complete(asyncio.start_server(joined, "127.0.0.1", port, ssl=context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def ended():
        server.close()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    try:
        yield port
    finally:
        asyncio.run_coroutine_threadsafe(ended(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
