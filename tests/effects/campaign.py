"""A service that behaves badly, and kills of workers, drivers and of the service: every effect once, never above the
limit::

    python -m tests.effects.campaign [--rows 1000000] [--limit 1000] [--seed 1] [--permits driver|shares|redis]

Every few seconds (``--pause``) something happens; between two of these is quiet. Prints one line of JSON: what was
found, and what is ``wrong``. ``tests.limits.campaign`` is the same of the limits alone, in virtual time.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pyarrow.dataset as ds

from testbed.effects_service import Service, effects_service
from testbed.periods import most_in_a_period
from tests.kills.committed import committed
from tests.kills.processes import MARK, marked
from tests.states.redis_process import redis_process

ROOT = Path(__file__).resolve().parents[2]
FILES = 4
FAILS, SECONDS = 0.05, 0.02
# From the end of one disturbance to the next: five are for settling, and what is left is quiet.
PAUSE_SECONDS = 16.0
SETTLED_SECONDS = 5.0
# A call may be on its way for so long.
LATE_SECONDS = 0.04


class Campaign:
    """``disturbed``: from when to when something was wrong that the query cannot help."""

    def __init__(self, folder: Path, service: Service, limit: int, seed: int, permits: str, pause: float):
        self.pause = pause
        self.folder = folder
        self.service = service
        self.limit = limit
        self.permits = permits
        self.chance = random.Random(seed)
        self.mark = f"effects-{os.getpid()}"
        self.disturbed: list[tuple[float, float]] = []
        self.done: Counter[str] = Counter()
        self.driver = self.start()

    def start(self) -> subprocess.Popen[bytes]:
        """A driver."""
        arguments = [str(self.folder), self.service.url, f"{self.limit}/s", self.permits]
        command = [sys.executable, "-m", "tests.effects.job", *arguments]
        environment = {**os.environ, MARK: self.mark, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        environment |= {"SPARK_LOCAL_IP": "127.0.0.1"}
        log = (self.folder / "driver.log").open("ab")
        return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)

    def run(self, seconds: float) -> None:
        """Until the query has read all, restarted as often as it has to be. Raises TimeoutError after so long."""
        end, events = time.monotonic() + seconds, list(self.events())
        due = time.monotonic() + 1.5 * self.pause
        while True:
            if self.driver.poll() == 0:
                return
            if self.driver.returncode is not None:
                self.done["driver ended by itself"] += 1
                self.driver = self.start()
            if time.monotonic() > end:
                raise TimeoutError(f"not over after {seconds:g} s")
            if time.monotonic() > due:
                if not events:
                    events = list(self.events())
                name = events.pop(0)
                began = time.time()
                getattr(self, name)()
                self.disturbed.append((began, time.time()))
                self.done[name] += 1
                due = time.monotonic() + self.pause
            time.sleep(0.05)

    def events(self) -> list[str]:
        """Each once, by chance."""
        names = ["kill_worker", "kill_driver", "kill_service", "halve", "hang", "go_down"]
        return self.chance.sample(names, len(names))

    def kill_worker(self) -> None:
        workers = [pid for pid, command in marked(self.mark).items() if "pyspark.daemon" in command]
        if workers:
            os.kill(self.chance.choice(workers), signal.SIGKILL)

    def kill_driver(self) -> None:
        """The whole application, JVM and Python, with what it has under way."""
        os.killpg(self.driver.pid, signal.SIGKILL)
        for pid in marked(self.mark):
            if "java" in marked(self.mark).get(pid, ""):
                os.kill(pid, signal.SIGKILL)
        self.driver.wait()
        self.driver = self.start()
        self.wait_for_calls(60)

    def kill_service(self) -> None:
        self.service.kill()
        time.sleep(1.5)
        self.service.start()

    def halve(self) -> None:
        """It says 429 to half of the calls, then takes all again."""
        self.service.behave(fails=FAILS, seconds=SECONDS, capacity=self.limit // 2)
        time.sleep(4)
        self.service.behave(fails=FAILS, seconds=SECONDS)

    def hang(self) -> None:
        self.service.behave(hangs=True)
        time.sleep(2)
        self.service.behave(fails=FAILS, seconds=SECONDS)
        time.sleep(6)  # what hangs runs into its client's time-out

    def go_down(self) -> None:
        self.service.behave(down=True)
        time.sleep(3)
        self.service.behave(fails=FAILS, seconds=SECONDS)

    def wait_for_calls(self, seconds: float) -> None:
        """Those of the new driver: workers of the old one may call for a moment longer than it lives."""
        end = time.monotonic() + seconds
        before, since = len(self.service.calls), time.monotonic()
        while time.monotonic() < end:
            time.sleep(0.1)
            if len(self.service.calls) == before:
                continue
            if time.monotonic() - since > 1:
                return
            before, since = len(self.service.calls), time.monotonic()

    def quiet_seconds(self, times: list[float]) -> list[int]:
        """Calls of each second in which nothing was wrong, nor in the five before."""
        last = times[-1]
        edges = [(times[0] - 1, times[0]), *self.disturbed, (last - 1, last)]
        counts = []
        for (_, begin), (end, _) in pairwise(edges):
            second = begin + SETTLED_SECONDS
            while second + 1 <= end:
                counts.append(sum(1 for time_ in times if second <= time_ < second + 1))
                second += 1
        return counts


def unexplained(times: list[float], limit: int, late: list[tuple[float, float]]) -> int:
    """Calls in the worst second beyond its limit, less those that the service can have counted late: when it was
    stopped, what came meanwhile is counted together. ``late``: when it went on, and after how many seconds."""
    worst = first = 0
    for i, time_ in enumerate(times):
        while times[first] <= time_ - 1:
            first += 1
        if (beyond := i - first + 1 - limit) > worst:
            stopped = sum(seconds for at, seconds in late if time_ - 1 - LATE_SECONDS <= at <= time_ + LATE_SECONDS)
            worst = max(worst, beyond - int(limit * stopped))
    return worst


def check(campaign: Campaign, rows: int) -> dict[str, object]:
    """What was found."""
    calls, effects = campaign.service.calls, campaign.service.effects
    times = sorted(call.time for call in calls)
    quiet = campaign.quiet_seconds(times)
    lines = Counter(
        line
        for path in committed(campaign.folder / "out")
        for line in ds.dataset(path).to_table(columns=["line"])["line"].to_pylist()
    )
    used = sorted(quiet)[len(quiet) // 2] / campaign.limit if quiet else 0.0
    wrong = []
    if len(effects) != rows or set(effects.values()) != {1}:
        wrong.append(f"{len(effects)} keys, done {sorted(set(effects.values()))} times")
    if len(lines) != rows or set(lines.values()) != {1}:
        missing = [n for n in range(rows) if str(n) not in lines][:20]
        times_each = sorted(set(lines.values()))
        wrong.append(f"{len(lines)} lines of {rows} in the sink, {times_each} times; missing: {missing}")
    most, late = most_in_a_period(times), campaign.service.late
    if (beyond := unexplained(times, campaign.limit, late)) > 0:
        wrong.append(f"{most} calls in a second, {beyond} more than the limit and what came late")
    return {
        "rows": rows,
        "limit": campaign.limit,
        "calls": len(calls),
        "most": most,
        "stopped_seconds": round(sum(seconds for _, seconds in late), 3),
        "seconds": round(times[-1] - times[0], 1),
        "quiet_seconds": len(quiet),
        "used": round(used, 3),
        "used_mean": round(sum(quiet) / len(quiet) / campaign.limit, 3) if quiet else 0.0,
        "done": dict(campaign.done),
        "wrong": wrong,
    }


def run(
    folder: Path, rows: int, limit: int, seed: int, permits: str = "driver", pause: float = PAUSE_SECONDS
) -> dict[str, object]:
    """One campaign below that folder. ``permits``: driver, shares or redis."""
    (folder / "in").mkdir(parents=True)
    for number in range(FILES):
        lines = range(number, rows, FILES)
        (folder / "in" / f"{number}.txt").write_text("".join(f"{n}\n" for n in lines))
    with ExitStack() as held:
        service = held.enter_context(effects_service(folder / "service", fails=FAILS, seconds=SECONDS))
        if permits == "redis":
            permits = held.enter_context(redis_process(folder)).url
        campaign = Campaign(folder, service, limit, seed, permits, pause)
        try:
            campaign.run(300 + 8 * rows / limit)
        finally:
            os.killpg(campaign.driver.pid, signal.SIGKILL) if campaign.driver.poll() is None else None
            for pid in marked(campaign.mark):
                os.kill(pid, signal.SIGKILL)
        return check(campaign, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--permits", choices=["driver", "shares", "redis"], default="driver")
    parser.add_argument("--pause", type=float, default=PAUSE_SECONDS, help="seconds between two disturbances")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made) / "campaign"
        print(json.dumps(run(folder, given.rows, given.limit, given.seed, given.permits, given.pause)), flush=True)
