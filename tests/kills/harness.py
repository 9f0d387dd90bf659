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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from pystorm_source.records.record_writer import SUFFIX as RECORD_SUFFIX
from tests.kills import rounds
from tests.kills.processes import MARK, gone, marked, orphans, parent_of
from tests.kills.rounds import Round
from tests.kills.session import CLUSTER, ROOT, TWO_HOSTS, end, environment, session
from tests.kills.two_hosts import two_hosts

SPARKS_OWN = re.compile(
    r"^(spark|faulthandler|blockmgr|hsperfdata|libsnappy|libzstd|liblz4|libnetty|librocksdb|snappy|pyspark|artifacts)"
)
RECORDS = re.compile(r"pystorm-source-\d+-progress-\d+")
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
        """An outcome for each seed: its ``wrong`` is empty if the round has passed."""
        todo = [Round.of(seed) for seed in seeds]
        drivers = [one for one in todo if one.victim == "driver"]
        env = environment(self.folder / "session")
        yield from self._in_session(CLUSTER, [one for one in todo if one.master == CLUSTER and one not in drivers])
        if twins := [one for one in todo if one.master == TWO_HOSTS]:
            with two_hosts(self.folder / "hosts", env | {MARK: self._mark}) as address:
                yield from self._in_session(address, twins)
        for some in rounds.queries(drivers):
            yield from self._judged(some, self._killed_driver)
        if left := gone(lambda: marked(self._mark), LINGER):
            yield {"seed": None, "killed": False, "wrong": [f"alive at the end of all: {left}"]}

    def _in_session(self, master: str, todo: list[Round]) -> Iterator[Outcome]:
        os.environ.update({**environment(self.folder / "session"), MARK: self._mark})
        spark = session(master, self.folder / "session")
        try:
            if not self._wanted:
                self._wanted = self._content(spark, [], rounds.fresh(self.folder / "unharmed"))
                if not rounds.is_whole(self._wanted):
                    raise RuntimeError(f"rows are wrong without a kill, too: {self._wanted}")
            for some in rounds.queries(todo):
                yield from self._judged(some, lambda some, folder: self._beside(spark, some, folder))
        finally:
            end(spark)

    def _content(self, spark: SparkSession, some: list[Round], folder: Path) -> Outcome:
        rounds.run(spark, some, folder)
        return rounds.content(spark, folder)

    def _beside(self, spark: SparkSession, some: list[Round], folder: Path) -> tuple[Outcome, list[str]]:
        """Kills that the session survives: what the sink holds, and what was wrong."""
        found = self._content(spark, some, folder)
        left = gone(lambda: orphans(self._mark, os.getpid()), LINGER)
        return found, [f"orphans: {left}"] if left else []

    def _judged(self, some: list[Round], suffer: Callable[..., tuple[Outcome, list[str]]]) -> Iterator[Outcome]:
        """The outcomes of the rounds of one query. The sink holds the same whatever the scheduler and the master."""
        began = time.monotonic()
        folder = rounds.fresh(self.folder / f"query{some[0].seed}")
        try:
            found, wrong = suffer(some, folder)
            kind = rounds.kind_of_query(some)
            wanted = self._wanted if kind == "offsets" else rounds.wanted_content(kind)
            wrong += [] if found == wanted else [f"the sink has {found}, without a kill {wanted}"]
        except Exception as error:
            wrong = [f"{type(error).__name__}: {error}"[-2000:]]
        wrong += remaining_files(self.folder)
        again = rounds.restarts(folder)
        seconds = round((time.monotonic() - began) / len(some), 1)
        for one in some:
            killed = one.has_happened(folder)
            missing = [] if killed else ["what was to happen did not"]
            more = {"scheduler": rounds.scheduler_of(some), "killed": killed, "seconds": seconds}
            more |= {"restarts": again} if again else {}
            yield {**one.described(), **more, "wrong": wrong + missing}

    def _killed_driver(self, some: list[Round], folder: Path) -> tuple[Outcome, list[str]]:
        """A job for each round, which is killed when it comes to a marker, and one that ends the query."""
        wrong: list[str] = []
        for _ in some:
            job = Job(some, self.folder / "session", folder)
            wrong += self._kill(job, some, folder)
        job = Job(some, self.folder / "session", folder)
        printed = job.printed()
        if not printed:
            raise RuntimeError(f"the last job did not come to its end: {job.complaints()}")
        return json.loads(printed), wrong

    def _kill(self, job: "Job", some: list[Round], folder: Path) -> list[str]:
        """Waits for a marker, kills, waits for the others to end by themselves; what was wrong with that."""
        one = job.comes_to_one_of([each for each in some if not each.has_happened(folder)], folder)
        if one is None:
            raise RuntimeError(f"the driver came to no place to die: {job.complaints()}")
        job.kill(one.driver)
        left = gone(lambda: marked(job.mark), LINGER)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        wrong = [f"orphans of {one.driver}: {left}"] if left else []
        return wrong if rounds.unfinished(folder) else [*wrong, "the kill left no micro-batch unfinished"]


class Job:
    """``python -m tests.kills.job`` for these rounds. ``files``: of Spark; ``folder``: of the query."""

    def __init__(self, some: list[Round], files: Path, folder: Path):
        self.mark = uuid.uuid4().hex
        self._log = folder / "job.log"
        seeds = [str(one.seed) for one in some]
        command = [sys.executable, "-m", "tests.kills.job", some[0].master, str(files), str(folder), *seeds]
        env = {**os.environ, **environment(files), MARK: self.mark}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdout=subprocess.PIPE, stderr=log, start_new_session=True
            )

    def comes_to_one_of(self, some: list[Round], folder: Path) -> Round | None:
        """The round whose marker appears; None, and the job has ended, if none does."""
        stop = time.monotonic() + DEADLINE
        while self._process.poll() is None and time.monotonic() < stop:
            for one in some:
                if one.has_happened(folder):
                    return one
            time.sleep(0.02)
        self._process.kill()
        return None

    def kill(self, who: str) -> None:
        """``who``: the driver's "jvm", its "python" or "both"; no other: the others must end by themselves."""
        mine = self._process.pid
        jvms = [int(name) for name in os.listdir("/proc") if name.isdigit() and parent_of(int(name)) == mine]
        for pid in {"jvm": jvms, "python": [mine], "both": [mine, *jvms]}[who]:
            os.kill(pid, signal.SIGKILL)

    def printed(self) -> str:
        """What it has printed. Blocking until the job has ended."""
        text, _ = self._process.communicate(timeout=DEADLINE)
        return text.decode()

    def complaints(self) -> str:
        return self._log.read_text(errors="replace")[-2000:]


def remaining_files(folder: Path) -> list[str]:
    """Temporary files of ours: whatever Spark is not known to leave there, and what is no record of a query.

    Records stay when their driver has died: they tell what it was doing. A later driver removes those of a day ago.
    """
    left = []
    for path in (folder / "session" / "tmp").iterdir():
        if RECORDS.fullmatch(path.name):
            left += [f"{path.name}/{file.name}" for file in path.iterdir() if not is_record(file)]
        elif not SPARKS_OWN.search(path.name):
            left.append(path.name)
    return [f"temporary files: {left}"] if left else []


def is_record(file: Path) -> bool:
    """Whether it is a record file, or the socket of its run: a killed runner leaves that, too."""
    return file.suffix == RECORD_SUFFIX or file.is_socket()
