"""A job in a process of its own whose Python workers and driver are killed at moments that a seed draws."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.kills.processes import MARK, marked, parent_of

ROOT = Path(__file__).resolve().parents[2]
_RUNNER = "pyspark.sql.streaming."


class KilledJob:
    """``python -m MODULE FOLDER``, which is started again until it ends with 0. Its bolts write into files below
    FOLDER/effects: kills come where there is something to lose.

    ``bytes_between``: written from one kill to the next at most. ``late``: seconds after that at most. ``drivers``: of
    the kills.
    """

    module: str
    bytes_between: int
    late = 0.0
    drivers = 0.08  # the next one takes ten seconds to start

    def __init__(self, folder: Path, kills: int, seed: int):
        self.folder = folder
        self.left = kills
        self.chance = random.Random(seed)
        self.mark = f"{self.module}-{os.getpid()}"
        self.done: Counter[str] = Counter()
        self.driver = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """A driver."""
        command = [sys.executable, "-m", self.module, str(self.folder)]
        environment = {**os.environ, MARK: self.mark, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1"}
        log = (self.folder / "driver.log").open("ab")
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)

    def run(self, seconds: float) -> None:
        """Until the job is over, restarted as often as it has to be. Raises TimeoutError after so long."""
        end = time.monotonic() + seconds
        due = self.next_due()
        try:
            while (code := self.driver.poll()) != 0:
                if time.monotonic() > end:
                    raise TimeoutError(f"not over after {seconds:g} s: {dict(self.done)}")
                if code is not None:
                    self.done["driver ended by itself"] += 1
                    self.end_driver()
                    self.driver = self.start()
                if self.left and self.written() >= due and self.workers():
                    time.sleep(self.chance.random() * self.late)
                    self.kill()
                    due = self.next_due()
                self.look()
                time.sleep(0.02)
            self.look()
        finally:
            self.end_driver()

    def written(self) -> int:
        """Bytes of the effects so far."""
        return sum(path.stat().st_size for path in (self.folder / "effects").iterdir())

    def next_due(self) -> int:
        """Bytes of effects at which the next process dies."""
        return self.written() + self.chance.randrange(1, self.bytes_between)

    def workers(self) -> list[int]:
        """Processes of Python that Spark has forked, with rows, a plan, or a commit; and those that plan for a query as
        long as it runs."""
        found = marked(self.mark)
        daemons = {pid for pid, command in found.items() if "pyspark.daemon" in command or "pystorm-python" in command}
        runners = {pid for pid, command in found.items() if _RUNNER in command}
        return sorted(runners | {pid for pid in daemons if parent_of(pid) in daemons})

    def kill(self) -> None:
        """A worker, or the driver with all that it has started."""
        self.left -= 1
        if self.chance.random() < self.drivers:
            self.done["driver"] += 1
            self.kill_driver()
            self.driver = self.start()
            return
        try:
            pid = self.chance.choice(self.workers())
            name = "runner" if _RUNNER in marked(self.mark).get(pid, "") else "worker"
            os.kill(pid, signal.SIGKILL)
            self.done[name] += 1
        except (IndexError, ProcessLookupError):
            self.done["gone before"] += 1

    def kill_driver(self) -> None:
        self.end_driver()

    def end_driver(self) -> None:
        for pid in [self.driver.pid, *marked(self.mark)]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        self.driver.wait()

    def look(self) -> None:
        """Called every few milliseconds."""
