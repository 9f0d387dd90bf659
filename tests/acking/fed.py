"""A spout that is fed by the test's clock and remembers what it was told, and bolts that give verdicts."""

from dataclasses import dataclass, field
from typing import Any

from pystorm_source import Bolt, Spout, Topology
from pystorm_source.testing import PAUSE, ManualClock, Result, ScriptedSpout, run_topology


@dataclass
class Heard:
    """What one spout was told, as (verdict, message id), and when by the clock of the run."""

    told: list[tuple[str, Any]] = field(default_factory=list)
    at: dict[tuple[str, Any], float] = field(default_factory=dict)
    clock: ManualClock = field(default_factory=ManualClock)

    def tell(self, verdict: str, tup_id: Any) -> None:
        self.told.append((verdict, tup_id))
        self.at[verdict, tup_id] = self.clock.now

    @property
    def acked(self) -> list[Any]:
        return sorted(tup_id for verdict, tup_id in self.told if verdict == "ack")

    @property
    def failed(self) -> list[Any]:
        return sorted(tup_id for verdict, tup_id in self.told if verdict == "fail")


def feeder(heard: Heard, *steps: Any, outputs: tuple = ("n long",)) -> Any:
    """A spec of a spout that plays ``steps`` (rows and pauses) and leaves fails at that: nothing is emitted again.

    The message id of a row is its number, from 0 on.
    """

    class Feeder(ScriptedSpout):
        def ack(self, tup_id):
            heard.tell("ack", tup_id)

        def fail(self, tup_id):
            heard.tell("fail", tup_id)

    return Feeder.of(list(outputs), *steps).spec()


def spout_of(heard: Heard, *rows: tuple, outputs: tuple = ("n long",)) -> Any:
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
            heard.tell("ack", tup_id)

        def fail(self, tup_id):
            heard.tell("fail", tup_id)

    Emitter.outputs = list(outputs)
    return Emitter.spec()


def run(heard: Heard, config: dict | None = None, lasts: float = 0, **body: Any) -> Result:
    """The topology of these specs, run by the clock of ``heard``, for ``lasts`` seconds of it at least.

    A micro-batch ends when its spouts have nothing, whatever bolts keep: who is to hear of time-outs waits for them.
    """
    if lasts:
        body["pause"] = feeder(Heard(), PAUSE(lasts))
    made = type("Made", (Topology,), body)
    return run_topology(made, config=config, clock=heard.clock, together=True, errors="collect")


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
