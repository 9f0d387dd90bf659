"""A spout that is fed by the test's clock and records its acks and fails, and bolts that give verdicts."""

from dataclasses import dataclass, field
from typing import Any

from pystorm_source import Bolt, Spout, Topology
from pystorm_source.testing import PAUSE, ManualClock, Result, ScriptedSpout, run_topology


@dataclass
class SpoutCalls:
    """Acks and fails of one spout, as (verdict, message id), and their times by the clock of the run."""

    notified: list[tuple[str, Any]] = field(default_factory=list)
    at: dict[tuple[str, Any], float] = field(default_factory=dict)
    clock: ManualClock = field(default_factory=ManualClock)

    def add(self, verdict: str, tup_id: Any) -> None:
        self.notified.append((verdict, tup_id))
        self.at[verdict, tup_id] = self.clock.now

    @property
    def acked(self) -> list[Any]:
        return sorted(tup_id for verdict, tup_id in self.notified if verdict == "ack")

    @property
    def failed(self) -> list[Any]:
        return sorted(tup_id for verdict, tup_id in self.notified if verdict == "fail")


def feeder(calls: SpoutCalls, *steps: Any, outputs: tuple = ("n long",)) -> Any:
    """A spec of a spout that plays ``steps`` (rows and pauses) and leaves fails at that: nothing is emitted again.

    The message id of a row is its number, from 0 on.
    """

    class Feeder(ScriptedSpout):
        def ack(self, tup_id):
            calls.add("ack", tup_id)

        def fail(self, tup_id):
            calls.add("fail", tup_id)

    return Feeder.of(list(outputs), *steps).spec()


def spout_of(calls: SpoutCalls, *rows: tuple, outputs: tuple = ("n long",)) -> Any:
    """A spec of a spout that emits ``rows``, one per call: (values, message id) or (values, message id, stream)."""

    class Emitter(Spout):
        def initialize(self, conf, context):
            self.left = list(rows)

        def next_tuple(self):
            if not self.left:
                return False
            self.emit(*self.left.pop(0))
            return None

        def ack(self, tup_id):
            calls.add("ack", tup_id)

        def fail(self, tup_id):
            calls.add("fail", tup_id)

    Emitter.outputs = list(outputs)
    return Emitter.spec()


def run(calls: SpoutCalls, config: dict | None = None, lasts: float = 0, **body: Any) -> Result:
    """The topology of these specs, run by the clock of ``calls``, for ``lasts`` seconds of it at least.

    A micro-batch ends when its spouts have nothing, whatever bolts keep: a test of time-outs waits for them.
    """
    if lasts:
        body["pause"] = feeder(SpoutCalls(), PAUSE(lasts))
    made = type("Made", (Topology,), body)
    return run_topology(made, config=config, clock=calls.clock, together=True, errors="collect")


class Acks(Bolt):
    """Takes what it gets."""

    def process(self, tup):
        pass


class Passes(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.emit(tup.values)


class Held(Bolt):
    """Gives verdicts itself; ``self.held`` are the tuples without one."""

    auto_ack = False

    def initialize(self, conf, context):
        self.held = []


def settling(verdicts: dict[int, str]) -> type[Bolt]:
    """A bolt that gives the tuple with number n the verdict ``verdicts[n]``: ack, fail, raise or never; else ack."""

    class Settles(Bolt):
        auto_ack = False
        exit_on_exception = False

        def process(self, tup):
            verdict = verdicts.get(tup.values.n, "ack")
            if verdict == "raise":
                raise ValueError(f"number {tup.values.n}")
            if verdict != "never":
                getattr(self, verdict)(tup)

    return Settles
