"""Runs rounds and judges them: the sink against that of a run without a kill, what processes and files are left.

rounds whose victim is a worker or an executor ─► one session of two executors, round after round
rounds of twins ─► one session of two hosts
rounds whose victim is the driver ─► a chain of jobs: each ends the round before, begins the next one, is killed
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.kills import rounds
from tests.kills.processes import MARK, gone, marked, orphans, parent_of
from tests.kills.rounds import Round
from tests.kills.session import CLUSTER, LOCAL, ROOT, TWO_HOSTS, end, environment, session
from tests.kills.two_hosts import two_hosts

SPARKS_OWN = re.compile(
    r"^(spark|faulthandler|blockmgr|hsperfdata|libsnappy|libzstd|liblz4|libnetty|snappy|pyspark|artifacts)"
)
LINGER = 20.0
DEADLINE = 180.0

Outcome = dict[str, Any]


class Harness:
    """``folder``: for everything that the rounds write. One session at a time."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._mark = uuid.uuid4().hex
        self._wanted: Outcome = {}

    def run(self, seeds: Iterable[int]) -> Iterator[Outcome]:
        """An outcome for each seed: its ``wrong`` is empty where the round has passed."""
        todo = [Round.of(seed) for seed in seeds]
        env = environment(self.folder / "session")
        drivers = [one for one in todo if one.victim == "driver"]
        yield from self._in_session(CLUSTER, [one for one in todo if one.master == CLUSTER and one not in drivers])
        if twins := [one for one in todo if one.master == TWO_HOSTS]:
            with two_hosts(self.folder / "hosts", env | {MARK: self._mark}) as address:
                yield from self._in_session(address, twins)
        for master in (LOCAL, CLUSTER):
            yield from self._killed_drivers([one for one in drivers if one.master == master])
        if left := gone(lambda: marked(self._mark), LINGER):
            yield {"seed": None, "killed": False, "wrong": [f"alive at the end of all: {left}"]}

    def _in_session(self, master: str, todo: list[Round]) -> Iterator[Outcome]:
        os.environ.update({**environment(self.folder / "session"), MARK: self._mark})
        spark = session(master, self.folder / "session")
        try:
            if not self._wanted:
                self._wanted = self._without_a_kill(spark)
            for one in todo:
                yield self._judged(spark, one)
        finally:
            end(spark)

    def _without_a_kill(self, spark: SparkSession) -> Outcome:
        """What the sink of every round must hold. It is the same under either scheduler."""
        folder = rounds.fresh(self.folder / "unharmed")
        rounds.run(spark, Round.unharmed(), folder)
        return rounds.content(spark, folder)

    def _judged(self, spark: SparkSession, one: Round) -> Outcome:
        began = time.monotonic()
        folder = rounds.fresh(one.folder(self.folder))
        wrong = []
        try:
            rounds.run(spark, one, folder)
            wrong += self._differences(rounds.content(spark, folder))
        except Exception as error:
            wrong.append(f"{type(error).__name__}: {error}"[-2000:])
        if left := gone(lambda: orphans(self._mark, os.getpid()), LINGER):
            wrong.append(f"orphans: {left}")
        return outcome(one, folder, began, wrong + leftovers(self.folder))

    def _killed_drivers(self, todo: list[Round]) -> Iterator[Outcome]:
        half: Round | None = None  # its driver was killed, the next job brings it to its end
        wrong: list[str] = []
        began = time.monotonic()
        for one in [*todo, None] if todo else []:
            seeds = [each.seed for each in (half, one) if each is not None]
            if one is not None:
                rounds.fresh(one.folder(self.folder))
            job = Job((one or half).master, self.folder, seeds)
            killed = self._kill(job, one) if one is not None else []
            printed = job.printed()
            if half is not None:
                found = printed[0] if printed else {"nothing": job.complaints()}
                yield outcome(half, half.folder(self.folder), began, wrong + self._differences(found))
            began = time.monotonic()
            half, wrong = one, killed

    def _kill(self, job: "Job", one: Round) -> list[str]:
        """Waits for the marker, kills, waits for the others to end by themselves; what was wrong with that."""
        folder = one.folder(self.folder)
        if not job.comes_to(folder):
            return [f"the driver came to no place to die: {job.complaints()}"]
        job.kill(one.driver)
        wrong = leftovers(self.folder)
        if left := gone(lambda: marked(job.mark), LINGER):
            wrong.append(f"orphans of {one.driver}: {left}")
            for pid in left:
                os.kill(pid, signal.SIGKILL)
        if not rounds.unfinished(folder):
            wrong.append("the kill left no micro-batch unfinished")
        return wrong

    def _differences(self, content: Outcome) -> list[str]:
        return [] if content == self._wanted else [f"the sink has {content}, without a kill {self._wanted}"]


class Job:
    """``python -m tests.kills.job`` with these seeds."""

    def __init__(self, master: str, folder: Path, seeds: list[int]):
        self.mark = uuid.uuid4().hex
        self._log = folder / "jobs.log"
        command = [sys.executable, "-m", "tests.kills.job", master, str(folder), *map(str, seeds)]
        env = {**os.environ, **environment(folder / "session"), MARK: self.mark}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )

    def comes_to(self, folder: Path) -> bool:
        """Whether the kill's marker appears; the job has ended where it does not."""
        end = time.monotonic() + DEADLINE
        while not rounds.has_happened(folder):
            if self._process.poll() is not None or time.monotonic() > end:
                self._process.kill()
                return False
            time.sleep(0.02)
        return True

    def kill(self, who: str) -> None:
        """``who``: the driver's "jvm", its "python" or "both"; nobody else: the others must end by themselves."""
        mine = self._process.pid
        jvms = [int(name) for name in os.listdir("/proc") if name.isdigit() and parent_of(int(name)) == mine]
        for pid in {"jvm": jvms, "python": [mine], "both": [mine, *jvms]}[who]:
            os.kill(pid, signal.SIGKILL)

    def printed(self) -> list[Outcome]:
        """The rounds that it has brought to their end. Blocking until the job has ended."""
        text, _ = self._process.communicate(timeout=DEADLINE)
        return [json.loads(line) for line in text.splitlines()]

    def complaints(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]


def outcome(one: Round, folder: Path, began: float, wrong: list[str]) -> Outcome:
    killed = rounds.has_happened(folder)
    return {
        **one.described(),
        "killed": killed,
        "seconds": round(time.monotonic() - began, 1),
        "wrong": wrong if killed else [*wrong, "what was to happen did not"],
    }


def leftovers(folder: Path) -> list[str]:
    """Temporary files of ours: whatever Spark is not known to leave there."""
    left = [path.name for path in (folder / "session" / "tmp").iterdir() if not SPARKS_OWN.search(path.name)]
    return [f"temporary files: {left}"] if left else []
