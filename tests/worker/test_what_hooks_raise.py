"""Whatever a hook raises, of whatever kind: the user learns which component, which hook and which line."""

import asyncio
import logging
import traceback

import pytest

from pystorm_source import (
    ArrowBolt,
    AsyncBolt,
    BatchingBolt,
    Bolt,
    Grouping,
    JoinBolt,
    ReliableSpout,
    Spout,
    StatefulBolt,
)
from pystorm_source.clock import ManualClock
from pystorm_source.errors import TupleFailed
from pystorm_source.errors.failure_block import FailureBlock
from pystorm_source.plan import compile_plan
from pystorm_source.testing import run_topology
from pystorm_source.worker.local_run import LocalRun
from tests.worker.running import Batches, Numbers, Pass, topology


class Unprintable(Exception):
    def __str__(self):
        raise ValueError("no text")


class OwnKind(BaseException):
    """No Exception, and none of Python's."""


KINDS = (
    lambda: ValueError("why"),
    lambda: StopIteration("why"),
    lambda: MemoryError("why"),
    lambda: ExceptionGroup("why", [ValueError("one"), KeyError("two")]),
    Unprintable,
    lambda: SystemExit(3),
    lambda: GeneratorExit("why"),
    lambda: asyncio.CancelledError("why"),
    lambda: KeyboardInterrupt("why"),
    lambda: OwnKind("why"),
)
GO_THROUGH = (KeyboardInterrupt, OwnKind)
"""With a note: these may come from outside of the hook."""

OWN = {}
"""Of the hook that raises now: ``error``."""


def raises(hook):
    """A hook of that name, in a traceback too."""

    def body(*_, **__):
        raise OWN["error"]

    body.__code__ = body.__code__.replace(co_name=hook)
    return body


def raises_later(hook):
    async def body(*_, **__):
        await asyncio.sleep(0)
        raise OWN["error"]

    body.__code__ = body.__code__.replace(co_name=hook)
    return body


class Few(Numbers):
    def latest(self, partition):
        return 3


class FewBatches(Batches):
    latest = Few.latest


class Plain(Spout):
    outputs = ["n long"]
    left = 3

    def next_tuple(self):
        if self.left > 0:
            self.left -= 1
            self.emit([self.left], tup_id=self.left)


class Slow(Plain):
    """Emits what nothing joins; a second passes before each."""

    left = 100
    clock = ManualClock()

    def next_tuple(self):
        if self.left > 90:
            self.left -= 1
            self.clock.sleep(1)
            self.emit([self.left], tup_id=self.left)


class Again(ReliableSpout):
    outputs = ["n long"]
    left = 3
    next_tuple = Plain.next_tuple


class Groups(BatchingBolt):
    outputs = ["n long"]

    def group_key(self, tup):
        return tup.values.n

    def process_batch(self, key, tups):
        pass


class Ticks(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        pass


class Fails(Bolt):
    outputs = ["n long"]

    def process(self, tup):
        self.fail(tup)


class Columns(ArrowBolt):
    outputs = ["n long"]

    def process_batch(self, batch):
        self.emit_batch(batch)


class Requests(AsyncBolt):
    outputs = ["n long"]

    async def process(self, tup):
        await asyncio.sleep(0)


class Refused(Requests):
    async def process(self, tup):
        raise ValueError("refused")


class Sums(StatefulBolt):
    outputs = ["n long"]
    state_fields = ["sum long"]

    def process(self, tup):
        self.set_timer(1)

    def process_timer(self, key):
        pass


class Joins(JoinBolt):
    outputs = ["n long"]

    def process_join(self, tups):
        pass

    def process_expired(self, tups):
        pass


class Chooses:
    def prepare(self, context, stream, target_tasks):
        self.target_tasks = target_tasks

    def choose_tasks(self, task, values):
        return self.target_tasks[:1]


def bolt(cls, hook, made=raises, spout=Few, **config):
    s = spout.spec()
    return topology(s=s, raiser=type(cls.__name__, (cls,), {hook: made(hook)}).spec(inputs=[s], config=config))


def spout(cls, hook, behind=Pass):
    raiser = type(cls.__name__, (cls,), {hook: raises(hook)}).spec()
    return topology(raiser=raiser, b=behind.spec(inputs=[raiser]))


def stateful(hook):
    s = Few.spec()
    return topology(s=s, raiser=type("S", (Sums,), {hook: raises(hook)}).spec(inputs={s: Grouping.fields("n")}))


def joins(hook, others=Few, **body):
    s, t = Few.spec(), others.spec()
    fields = Grouping.fields("n")
    cls = type("J", (Joins,), {hook: raises(hook), **body})
    return topology(s=s, t=t, raiser=cls.spec(inputs={s: fields, t: fields}))


def split():
    raiser = type("Splits", (Few,), {"split": raises("split")}).spec(par=2)
    return topology(raiser=raiser, b=Pass.spec(inputs=[raiser]))


def grouping(hook):
    raiser = Few.spec()
    chooses = type("Chooses", (Chooses,), {hook: raises(hook)})()
    return topology(raiser=raiser, b=Pass.spec(inputs={raiser: Grouping.custom(chooses)}, par=2))


CLUSTER = {"scope": "cluster"}
HOOKS = {
    "bolt.__init__": (lambda: bolt(Pass, "__init__"), {}),
    "bolt.initialize": (lambda: bolt(Pass, "initialize"), {}),
    "bolt.process": (lambda: bolt(Pass, "process"), {}),
    "bolt.process_many": (lambda: bolt(Pass, "process_many"), {}),
    "bolt.process_tick": (lambda: bolt(Ticks, "process_tick"), {}),
    "bolt.cleanup": (lambda: bolt(Pass, "cleanup"), {}),
    "batching.initialize": (lambda: bolt(Groups, "initialize"), {}),
    "batching.group_key": (lambda: bolt(Groups, "group_key"), {}),
    "batching.process_batch": (lambda: bolt(Groups, "process_batch"), {}),
    "batching.process_batches": (lambda: bolt(Groups, "process_batches"), {}),
    "arrow.process_batch": (lambda: bolt(Columns, "process_batch"), {}),
    "arrow.process_batch, of a batch": (lambda: bolt(Columns, "process_batch", spout=FewBatches), {}),
    "arrow.process_tick": (lambda: bolt(Columns, "process_tick"), {}),
    "async.initialize": (lambda: bolt(Requests, "initialize", raises_later), {}),
    "async.process": (lambda: bolt(Requests, "process", raises_later), {}),
    "async.process_tick": (lambda: bolt(Requests, "process_tick", raises_later), {}),
    "async.is_overload": (lambda: bolt(Refused, "is_overload", **{"topology.async.max.pending": "adaptive"}), {}),
    "async.cleanup": (lambda: bolt(Requests, "cleanup", raises_later), {}),
    "stateful.process": (lambda: stateful("process"), CLUSTER),
    "stateful.process_timer": (lambda: stateful("process_timer"), {**CLUSTER, "timers_after": 5.0}),
    "join.process_join": (lambda: joins("process_join"), {"together": True}),
    "join.process_expired": (lambda: joins("process_expired", others=Slow), {"together": True}),
    "join.process_expired, by time": (
        lambda: joins("process_expired", others=Slow, join_timeout_secs=2.0),
        {"together": True, "clock": ManualClock()},
    ),
    "join.cleanup": (lambda: joins("cleanup"), {"together": True}),
    "spout.__init__": (lambda: spout(Plain, "__init__"), {}),
    "spout.initialize": (lambda: spout(Plain, "initialize"), {}),
    "spout.activate": (lambda: spout(Plain, "activate"), {}),
    "spout.next_tuple": (lambda: spout(Plain, "next_tuple"), {}),
    "spout.ack": (lambda: spout(Plain, "ack"), {}),
    "spout.fail": (lambda: spout(Plain, "fail", behind=Fails), {}),
    "spout.deactivate": (lambda: spout(Plain, "deactivate"), {}),
    "spout.cleanup": (lambda: spout(Plain, "cleanup"), {}),
    "reliable.ack": (lambda: spout(Again, "ack"), {}),
    "partitioned.partitions": (lambda: spout(Few, "partitions"), {}),
    "partitioned.earliest": (lambda: spout(Few, "earliest"), {}),
    "partitioned.latest": (lambda: spout(Few, "latest"), {}),
    "partitioned.snapshot": (lambda: spout(Few, "snapshot"), {}),
    "partitioned.commit": (lambda: spout(Numbers, "commit"), {"most": 400}),
    "partitioned.split": (split, {}),
    "partitioned.open": (lambda: spout(Few, "open"), {}),
    "partitioned.next_tuple": (lambda: spout(Few, "next_tuple"), {}),
    "partitioned.next_batch": (lambda: spout(FewBatches, "next_batch"), {}),
    "partitioned.close": (lambda: spout(Few, "close"), {}),
    "partitioned.cleanup": (lambda: spout(Few, "cleanup"), {}),
    "grouping.prepare": (lambda: grouping("prepare"), {}),
    "grouping.choose_tasks": (lambda: grouping("choose_tasks"), {}),
}


def run_by_ranges(made, most):
    """A micro-batch is committed when the next one has been read."""
    run = LocalRun(compile_plan(made))
    try:
        run.unread.look()
        while ranges := run.unread.next_ranges(most):
            run.round(ranges)
    finally:
        run.stop()


def told(made, options, log):
    """What the user reads: the error, or without one the log; and the error."""
    log.clear()
    try:
        if "most" in options:
            run_by_ranges(made, **options)
        else:
            run_topology(made, timeout=20.0, **options)
    except BaseException as error:
        block = str(FailureBlock.of(error)) if isinstance(error, TupleFailed) else ""
        return block or "".join(traceback.format_exception(error)), error
    return log.text, None


@pytest.mark.parametrize("name", HOOKS)
def test_what_a_hook_raises_names_component_hook_and_line(name, caplog):
    caplog.set_level(logging.WARNING, "pystorm")
    make, options = HOOKS[name]
    hook = name.partition(".")[2].partition(",")[0]
    wrong = []
    for kind in KINDS:
        OWN["error"] = raised = kind()
        text, error = told(make(), options, caplog)
        missing = [part for part in ("'raiser'", f"in {hook}", __file__) if part not in text]
        if isinstance(raised, GO_THROUGH):
            missing += [] if error is raised else [f"itself, but {error!r}"]
        elif error is not None and not isinstance(error, TupleFailed):
            missing.append(f"TupleFailed, but {type(error).__name__}")
        if missing:
            wrong.append(f"{type(raised).__name__}: {', '.join(missing)}")
    assert wrong == []
