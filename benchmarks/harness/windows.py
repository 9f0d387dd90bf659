"""Two threads on two cores, measured in many short windows, ours and the peers' in turn.

What two threads can hand over depends on how far apart their cores are (how long a cache line takes there and back),
which the host of a virtual machine changes within seconds, and on what else runs. So each window lies between two pings
and looks at what other processes used of all cores meanwhile (``/proc/stat``); windows that began near and ended far,
or that others used more than a tenth of a core of, are dropped, and near is compared with near, far with far.
"""

import os
import select
import shlex
import statistics
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness.peers import DISRUPTOR, JCTOOLS, PROGRAMS, java_classes
from benchmarks.harness.record import ROOT, rounded
from pystorm_source.clock import SystemClock
from testbed.maven import PeerMissing

CLOCK = SystemClock()
NEAR_NS = 200
"""A cache line there and back takes 50 to 120 ns between cores that share a cache, 280 to 400 between others."""
SILENCE = 60.0
"""Seconds after which a program that does not answer is ended."""
OTHERS = 0.1
"""Of one core, for other processes."""
TICKS = os.sysconf("SC_CLK_TCK")
JAVA_FLAGS = ("-XX:+UseParallelGC", "-XX:+UseCondCardMark", "-Xms512m", "-Xmx512m")


class Program:
    """A program that answers each line "case milliseconds" with a line of numbers."""

    def __init__(self, command: Sequence[str], stderr: int | None = None) -> None:
        self._process = subprocess.Popen(
            list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, text=True, bufsize=1
        )

    def ask(self, case: str, millis: int) -> list[float]:
        """The numbers of its answer. Raises RuntimeError if it has ended."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{case} {millis}\n")
        return [float(word) for word in self.line().split()]

    def line(self) -> str:
        """Its next line. Raises RuntimeError if it has ended or is silent."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], SILENCE)[0]:
            self._process.kill()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args!r} ended with {self._process.wait()}")
        return line

    def pin(self, cpus: Sequence[int]) -> None:
        """Its threads t0, t2 to the first, t1, t3 to the second of the processors."""
        for task in Path(f"/proc/{self._process.pid}/task").iterdir():
            name = (task / "comm").read_text().strip()
            if name in ("t0", "t1", "t2", "t3"):
                os.sched_setaffinity(int(task.name), {cpus[int(name[1]) % 2]})

    def send_signal(self, number: int) -> None:
        """Such as SIGSTOP."""
        self._process.send_signal(number)

    def used(self) -> float:
        """Seconds of processor time that it has used."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def end(self) -> None:
        """Ends it and waits for that."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def processors() -> tuple[int, int]:
    """The two processors to measure on; twice the same if there is but one."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[-1]


def build_program(name: str, folder: Path) -> Path:
    """Compiles a C program of ``peer_programs`` into the folder. Raises PeerMissing."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    program = folder / name
    source = PROGRAMS / f"{name}.c"
    command = [compiler, "-O3", "-std=c11", "-pthread", f"-I{ROOT}", str(source), "-o", str(program), "-lm"]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.SubprocessError) as error:
        raise PeerMissing(f"{source.name} cannot be compiled here: {error}") from error
    return program


class Window(NamedTuple):
    """What one window showed."""

    value: float
    tail: float | None
    """The 99th percentile, of a window of round trips."""
    pings: tuple[float, float]
    others: float
    """Of a core, used by other processes."""

    @property
    def distance(self) -> str | None:
        """near, far, or None if it changed within the window."""
        near = [ping < NEAR_NS for ping in self.pings]
        return None if near[0] != near[1] else "near" if near[0] else "far"


class Bench:
    """Our program and the peers', running; use as a context."""

    def __init__(self, peers: bool, warm_up: float) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.cpus = processors()
        self._programs: dict[str, Program] = {}
        self.missing: str | None = None
        self.warm_up = warm_up
        arguments = [str(cpu) for cpu in self.cpus]
        self._programs["rings"] = Program([str(build_program("rings", Path(self._folder.name))), *arguments])
        if not peers:
            self.missing = "not measured (--no-peers)"
            return
        try:
            classes = java_classes("RingPeers", JCTOOLS, DISRUPTOR)
            java = Program(["java", *JAVA_FLAGS, "-cp", classes, "RingPeers"])
            java.line()
            java.pin(self.cpus)
            self._programs["java"] = java
        except (PeerMissing, RuntimeError, OSError) as error:
            self.missing = str(error)

    def __enter__(self) -> "Bench":
        return self

    def __exit__(self, *raised: object) -> None:
        for program in self._programs.values():
            program.end()
        self._folder.cleanup()

    def has(self, case: str) -> bool:
        """Whether the program of this case runs here."""
        return "java" in self._programs or self._of_name(case) == "rings"

    @staticmethod
    def _of_name(case: str) -> str:
        return "java" if case.startswith(("jctools-", "disruptor-")) else "rings"

    def warm(self, case: str) -> None:
        """Lets a peer in Java be compiled by its machine."""
        if self._of_name(case) == "java":
            self._programs["java"].ask(case, int(self.warm_up * 1000))

    def window(self, case: str, millis: int) -> Window:
        """Items a second, or the median of round trips in nanoseconds."""
        program = self._programs[self._of_name(case)]
        before = self.ping()
        total, own, began = busy(), program.used(), CLOCK.monotonic()
        answer = program.ask(case, millis)
        took = CLOCK.monotonic() - began
        others = max(0.0, (busy() - total) - (program.used() - own)) / took
        after = self.ping()
        if "round-trip" in case:
            return Window(answer[0], answer[1], (before, after), others)
        return Window(answer[0] / answer[1], None, (before, after), others)

    def ping(self) -> float:
        """Nanoseconds of a cache line there and back."""
        return self._programs["rings"].ask("ping", 0)[0]


def busy() -> float:
    """Seconds that all processors have been busy or taken away by the host."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICKS


def measure(bench: Bench, cases: Sequence[str], windows: int, millis: int) -> dict[str, list[Window]]:
    """So many windows of each case, in turn; those that are dropped are made again, at most as many again."""
    kept: dict[str, list[Window]] = {case: [] for case in cases}
    spare: dict[str, list[Window]] = {case: [] for case in cases}
    for case in cases:
        bench.warm(case)
    for _ in range(2 * windows):
        for case in cases:
            if len(kept[case]) < windows:
                seen = bench.window(case, millis)
                good = seen.distance is not None and seen.others <= OTHERS
                (kept if good else spare)[case].append(seen)
        if all(len(seen) == windows for seen in kept.values()):
            break
    # A machine that is never quiet shows something, too, and the record says so.
    return {case: kept[case] or spare[case][-windows:] for case in cases}


def summary(windows: Iterable[Window]) -> dict[str, Any]:
    """Medians by distance, with the number of windows, the pings' range and the largest share of others."""
    by_distance: dict[str, list[Window]] = {}
    for window in windows:
        by_distance.setdefault(window.distance or "changing", []).append(window)
    return {
        distance: {
            "value": rounded(statistics.median(window.value for window in seen)),
            "windows": len(seen),
            "ping_ns": [min(min(w.pings) for w in seen), max(max(w.pings) for w in seen)],
            "others": round(max(window.others for window in seen), 2),
        }
        | ({"p99": statistics.median(w.tail for w in seen if w.tail is not None)} if seen[0].tail is not None else {})
        for distance, seen in by_distance.items()
    }


def at_distance(ours: Sequence[Window], peer: Sequence[Window]) -> tuple[str, list[Window], list[Window]]:
    """The windows of both at the distance that both have most of; of ours alone if they have none in common."""

    def split(windows: Sequence[Window]) -> dict[str, list[Window]]:
        found: dict[str, list[Window]] = {"near": [], "far": [], "changing": []}
        for window in windows:
            found[window.distance or "changing"].append(window)
        return found

    mine, other = split(ours), split(peer)
    common = [name for name in mine if mine[name] and other[name]]
    names = common or [name for name in mine if mine[name]]
    name = max(names, key=lambda name: min(len(mine[name]), len(other[name]) if common else len(mine[name])))
    return name, mine[name], other[name] if common else []
