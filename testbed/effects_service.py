"""A local HTTP service that performs an effect once per key, counts every call, and can be made to behave badly.

``POST /effects`` with the header ``Idempotency-Key`` performs the effect of that key, at most once. Every call is a
line of ``calls.log``: time, status, key; a restarted service reads its effects back from there. ``behaviour.json``,
which a test may change at any time, says what it does: see ``Behaviour``. A busy machine sometimes stops the service
itself, which then counts calls late: ``late.log`` says when it continued, and after how long.

    python -m testbed.effects_service FOLDER [PORT]
"""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from aiohttp import web

LOG, BEHAVIOUR, PORT = "calls.log", "behaviour.json", "port"
LATE = "late.log"
LOOK_SECONDS = 0.02
BEAT_SECONDS, LATE_SECONDS = 0.005, 0.015


@dataclass
class Behaviour:
    """``fails``: share of calls that get a 500, half of them after their effect. ``seconds``: until an answer.
    ``capacity``: calls per second; further ones get a 429 and must retry after ``retry_after`` seconds; 0: any
    number. ``down``: every call gets a 503. ``hangs``: no call is answered."""

    fails: float = 0.0
    seconds: float = 0.0
    capacity: int = 0
    retry_after: float = 0.5
    down: bool = False
    hangs: bool = False


class _Service:
    def __init__(self, folder: Path):
        self._folder = folder
        self._looked = 0.0
        self._behaviour = Behaviour()
        self._done = {call.key for call in calls_of(folder) if call.done}
        self._log = (folder / LOG).open("a", buffering=1)
        self._recent: deque[float] = deque()
        self._chance = random.Random(7)

    async def effect(self, request: web.Request) -> web.Response:
        now = time.time()
        key = request.headers["Idempotency-Key"]
        status, done = self._decide(now, key)
        self._log.write(f"{now:.6f} {status} {int(done)} {key}\n")
        if done:
            self._done.add(key)
        if self._behaviour.hangs:
            await asyncio.sleep(3600)
        if self._behaviour.seconds:
            await asyncio.sleep(self._behaviour.seconds)
        headers = {"Retry-After": str(self._behaviour.retry_after)} if status == 429 else {}
        return web.json_response({"key": key}, status=status, headers=headers)

    def _decide(self, now: float, key: str) -> tuple[int, bool]:
        """Returns the status, and whether this call performs the effect."""
        behaviour = self._look(now)
        fresh = key not in self._done
        while self._recent and self._recent[0] <= now - 1:
            self._recent.popleft()
        if behaviour.down or behaviour.hangs:
            return 503, False
        if behaviour.capacity and len(self._recent) >= behaviour.capacity:
            return 429, False
        self._recent.append(now)
        if self._chance.random() < behaviour.fails:
            return 500, fresh and self._chance.random() < 0.5
        return 200, fresh

    def _look(self, now: float) -> Behaviour:
        if now - self._looked > LOOK_SECONDS:
            self._looked = now
            self._behaviour = Behaviour(**json.loads((self._folder / BEHAVIOUR).read_text()))
        return self._behaviour

    async def beat(self) -> None:
        """Records when the machine stopped it."""
        clock = asyncio.get_running_loop().time
        with (self._folder / LATE).open("a", buffering=1) as log:
            while True:
                due = clock() + BEAT_SECONDS
                await asyncio.sleep(BEAT_SECONDS)
                if (late := clock() - due) > LATE_SECONDS:
                    log.write(f"{time.time():.6f} {late:.6f}\n")


@dataclass
class Call:
    """One call: when it came, what it got, whether it did the effect of its key."""

    time: float
    status: int
    done: bool
    key: str


def calls_of(folder: Path) -> list[Call]:
    """Returns all calls so far, in order."""
    path = folder / LOG
    lines = path.read_text().splitlines() if path.exists() else []
    parts = (line.split(" ", 3) for line in lines)
    return [Call(float(time), int(status), done == "1", key) for time, status, done, key in parts]


class Service:
    """A handle on the running service."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def behave(self, **behaviour: object) -> None:
        """Sets the ``Behaviour`` from now on."""
        text = json.dumps(asdict(Behaviour(**behaviour)))  # type: ignore[arg-type]
        (self.folder / "new").write_text(text)
        (self.folder / "new").rename(self.folder / BEHAVIOUR)

    def start(self) -> None:
        """Starts the service, at its previous port if it had one. Returns once it listens."""
        port = self.url.rpartition(":")[2] or "0"
        (self.folder / PORT).unlink(missing_ok=True)
        command = [sys.executable, "-m", "testbed.effects_service", str(self.folder), port]
        self._process = subprocess.Popen(command, cwd=Path(__file__).parents[1])
        deadline = time.monotonic() + 60
        while not (self.folder / PORT).exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the service does not start")
            time.sleep(0.02)
        self.url = f"http://127.0.0.1:{(self.folder / PORT).read_text()}"

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kills it with -9, as if the machine failed."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    @property
    def calls(self) -> list[Call]:
        """All calls so far, in order."""
        return calls_of(self.folder)

    @property
    def late(self) -> list[tuple[float, float]]:
        """Each time that it continued after being stopped, and for how many seconds it was."""
        path = self.folder / LATE
        lines = path.read_text().splitlines() if path.exists() else []
        return [(float(at), float(seconds)) for at, _, seconds in (line.partition(" ") for line in lines)]

    @property
    def effects(self) -> Counter[str]:
        """Key → how often its effect was performed."""
        return Counter(call.key for call in self.calls if call.done)


@contextmanager
def effects_service(folder: Path, **behaviour: object) -> Iterator[Service]:
    """Runs a service in a separate process while the block runs."""
    folder.mkdir(exist_ok=True)
    service = Service(folder)
    service.behave(**behaviour)
    service.start()
    try:
        yield service
    finally:
        service.kill()


async def _serve(folder: Path, port: int) -> None:
    application = web.Application()
    service = _Service(folder)
    application.router.add_post("/effects", service.effect)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=4096, reuse_address=True)
    await site.start()
    (folder / "new-port").write_text(str(runner.addresses[0][1]))
    os.replace(folder / "new-port", folder / PORT)
    await service.beat()


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
