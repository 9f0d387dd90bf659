"""Whatever fails on the way, and however often: the rows that leave a task are those of a run in which nothing does.

A bolt's verdict on a tuple depends on how often it has seen it: so many times something goes wrong, then it is acked.
What it emits does not depend on that, so every attempt emits the same rows, and all but the last must stay inside.
A call of a bolt may take longer than the time-out by the test's clock, and spouts may be few trees ahead.
``PYSTORM_ACKING_EXAMPLES``: how many topologies to try.
"""

import itertools
import os
import threading
import zlib
from collections import Counter, defaultdict
from functools import partial

import pyarrow as pa
from hypothesis import HealthCheck, assume, event, given, settings

from pystorm_source import BatchingBolt, Bolt, PartitionedSpout, Topology
from pystorm_source.clock import ManualClock
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, ViewPlan
from pystorm_source.worker.new_worker import new_worker
from tests.acking.drawn import GROUPINGS, Deed, Node, Unfit, nodes, shrinking
from tests.sizes import sized

EXAMPLES = int(os.environ.get("PYSTORM_ACKING_EXAMPLES", sized(25)))
FIELDS = ["root long", "path string", "serial long"]
SCHEMA = pa.schema([("root", pa.int64()), ("path", pa.string()), ("serial", pa.int64()), ("task", pa.int32())])
WRONGS = ["fail", "raise", "never", "late", "late fail", "hold", "ack, fail"]
MOST_ROWS = 150
TIMEOUT = 2
SECONDS = [0, 0, 0, 0.3, 1.5, 5]  # that a call of a bolt takes


class Script:
    """What goes wrong with a tuple, by bolt, root and path: the n-th time that it is seen there."""

    def __init__(self, wrongs, odds, poison=None):
        self.wrongs, self.odds, self.poison = wrongs, odds, poison
        self.serial = itertools.count()
        self.failures = 0
        self._seen = Counter()
        self._lock = threading.Lock()

    def verdict(self, number, root, path):
        if self.poison is not None:
            return "fail" if self.poison == (number, root) else "ack"
        key = (number, root, path)
        with self._lock:
            time = self._seen[key]
            self._seen[key] += 1
        chosen = self.wrongs[zlib.crc32(repr(key).encode()) % len(self.wrongs)]
        if zlib.crc32(repr((key, "?")).encode()) % 100 >= self.odds or time >= len(chosen):
            return "ack"
        self.failures += 1
        return chosen[time]


def spout_of(total, batch):
    """Emits single tuples, or, if ``batch`` is a number, Arrow batches of so many rows."""

    class Roots(PartitionedSpout):
        outputs = FIELDS

        def partitions(self):
            return ["p"]

        def latest(self, partition):
            return total

        def open(self, partition, start, end):
            self.at, self.end = start, end

        def next_tuple(self):
            if self.at == self.end:
                return False
            self.emit((self.at, "", 0), self.at)
            self.at += 1

    class Batches(Roots):
        next_tuple = PartitionedSpout.next_tuple

        def next_batch(self):
            if self.at == self.end:
                return None
            roots = range(self.at, min(self.at + batch, self.end))
            self.at = roots.stop
            columns = [pa.array(roots, pa.int64()), pa.array([""] * len(roots)), pa.array([0] * len(roots), pa.int64())]
            return pa.record_batch(columns, names=["root", "path", "serial"])

    return Roots if batch is None else Batches


def bolt_of(node, number, script, pass_time):
    """The bolt of a node: it emits, then gives its verdict; if that is late, both come with a tick. ``pass_time`` is
    called in each call."""

    class Plain(Bolt):
        outputs = FIELDS
        auto_ack = False
        exit_on_exception = False

        def initialize(self, conf, context):
            self.late = []

        def process(self, tup):
            pass_time()
            verdict = script.verdict(number, tup.values.root, tup.values.path)
            if verdict.startswith("late"):
                self.late.append((verdict, tup))
                return
            self.emit_of(tup)
            if verdict == "raise":
                raise ValueError("as it was drawn")
            if verdict == "hold":
                self.late.append((verdict, tup))
            elif verdict != "never":
                self.settle(verdict, tup)

        def emit_of(self, tup):
            deed = node.deed_of(number, tup.values.root, tup.values.path)
            for emit in range(deed.emits):
                row = (tup.values.root, f"{tup.values.path}/{number}.{emit}", next(script.serial))
                self.emit(row, anchors=[tup, tup] if deed.anchors == "twice" else [tup])

        def settle(self, verdict, tup):
            (self.fail if verdict in ("fail", "late fail") else self.ack)(tup)
            if verdict == "ack, fail":
                self.fail(tup)

        def process_tick(self, tup):
            late, self.late = self.late, []
            for verdict, each in late:
                if verdict.startswith("late"):
                    self.emit_of(each)
                self.settle(verdict, each)

    class Batching(BatchingBolt):
        """Emits for each tuple of a group, anchored to all of them."""

        outputs = FIELDS
        exit_on_exception = False
        ticks_between_batches = 0

        def group_key(self, tup):
            return tup.values.root % 3

        def process_batch(self, key, tups):
            pass_time()
            verdicts = {script.verdict(number, tup.values.root, tup.values.path) for tup in tups}
            for tup in tups:
                for emit in range(node.deed_of(number, tup.values.root, tup.values.path).emits):
                    self.emit((tup.values.root, f"{tup.values.path}/{number}.{emit}", next(script.serial)))
            if verdicts & {"fail", "late fail"}:
                for tup in tups:
                    self.fail(tup)
            elif verdicts - {"ack", "ack, fail"}:
                raise ValueError("as it was drawn")

    return Batching if node.batching else Plain


def open_nodes(drawn):
    """The bolts that have no subscriber."""
    taken = {producer for node in drawn for producer, _ in node.inputs}
    return [number for number in range(len(drawn)) if number not in taken]


def rows_of(drawn: tuple[Node, ...], total: int) -> Counter:
    """(root, path) of the rows without a failure; raises Unfit for more than ``MOST_ROWS`` tuples."""
    rows, opened = Counter(), open_nodes(drawn)
    tuples = 0

    def send(producer, root, path):
        nonlocal tuples
        for number, node in enumerate(drawn):
            for subscribed, grouping in node.inputs:
                if subscribed == producer:
                    for _ in range(node.par if grouping == "all" else 1):
                        tuples += 1
                        if tuples > MOST_ROWS:
                            raise Unfit
                        emitted(number, node, root, path)

    def emitted(number, node, root, path):
        for emit in range(node.deed_of(number, root, path).emits):
            way = f"{path}/{number}.{emit}"
            if number in opened:
                rows[root, way] += 1
            else:
                send(number, root, way)

    for root in range(total):
        send(-1, root, "")
    return rows


def worker_of(case, script, config):
    drawn = case["drawn"]
    spec = spout_of(case["total"], case["batch"]).spec(par=case["spouts"])
    body, specs = {"spout": spec}, {-1: spec}
    clock = Jumping()
    for number, node in enumerate(drawn):
        inputs = {specs[producer]: GROUPINGS[grouping] for producer, grouping in node.inputs}
        pass_time = partial(clock.advance, case["seconds"][number])
        bolt = bolt_of(node, number, script, pass_time)
        specs[number] = body[f"bolt{number}"] = bolt.spec(
            inputs=inputs, par=node.par, processes=min(node.par, case["processes"][number])
        )
    plan = compile_plan(type("Drawn", (Topology,), body), config)
    views = tuple(ViewPlan(f"bolt{number}", "default", (0, 1, 2), task_column=3) for number in open_nodes(drawn))
    clock.worker = new_worker(plan, OutputPlan(SCHEMA, views, case["batch_rows"]), clock)
    if case["span"] is not None:
        clock.worker._acker.span = case["span"]
    return clock.worker


class Jumping(ManualClock):
    """A thread that sleeps by it wakes when the next tree times out or the next tick is due."""

    worker = None

    def sleep(self, seconds):
        event = self.worker.next_due
        super().sleep(seconds if event == float("inf") else max(seconds, event - self.now))


def ascending(numbers):
    return all(a < b for a, b in itertools.pairwise(numbers))


def drawn_case(draws):
    # A row without an anchor belongs to no attempt, and comes with each.
    drawn = nodes(draws, 1, ["ack"], most=4, anchors=["own", "own", "own", "twice"])
    wrongs = [[draws.one_of(WRONGS) for _ in range(draws.integer(1, 2))] for _ in range(draws.integer(1, 4))]
    return {
        "drawn": drawn,
        "wrongs": wrongs,
        "odds": draws.one_of([0, 10, 30, 60]),
        "total": draws.integer(1, 20),
        "spouts": draws.integer(1, 3),
        "batch_rows": draws.one_of([1, 3, 10, 1000]),
        "pending": draws.one_of([None, None, 1, 2, 5]),
        "small": draws.one_of([False, True]),
        "seconds": [draws.one_of(SECONDS) for _ in range(4)],
        "span": draws.one_of([None, None, 1, 2, 5]),
        "batch": draws.one_of([None, None, None, 1, 7, 100]),
        # Of each bolt; with the test's clock they are pumped by turns of this process.
        "processes": [draws.one_of([0, 0, 1, 2]) for _ in range(4)],
        # What poisons a tuple, for the test of such a one.
        "where": draws.integer(0, 3),
        "root": draws.integer(0, 19),
        "retries": draws.integer(0, 3),
    }


def config_of(case, scheduler, **more):
    config = {
        "topology.scheduler": scheduler,
        "topology.message.timeout.secs": TIMEOUT,
        "topology.tick.tuple.freq.secs": 0.7,
        "topology.max.spout.retries": 1_000_000,
        "pystorm.log.level": "critical",
        **more,
    }
    if case["pending"] is not None:
        config["topology.max.spout.pending"] = case["pending"]
    if case["small"]:
        config |= {"topology.executor.receive.buffer.size": 2, "topology.producer.batch.size": 1}
    return config


def rows_that_leave(case, script, config):
    return rows_and_counts(case, script, config)[0]


def rows_and_counts(case, script, config):
    worker = worker_of(case, script, config)
    try:
        batches = list(worker.run("spout", "p", 0, case["total"]))
        rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
        return rows, worker.report()["components"]
    finally:
        worker.stop()


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=shrinking(drawn_case))
def test_the_rows_of_a_run_with_failures_are_those_of_one_without(case, scheduler):
    checked(check_failures, case, scheduler)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(case=shrinking(drawn_case))
def test_slow_bolts_that_fail_nothing_get_each_tuple_once(case, scheduler):
    checked(check_slow_bolts, case, scheduler)


@settings(max_examples=max(10, EXAMPLES // 3), deadline=None, suppress_health_check=list(HealthCheck))
@given(case=shrinking(drawn_case))
def test_of_a_tuple_that_is_dropped_nothing_leaves(case, scheduler):
    checked(check_dropped, case, scheduler)


def checked(check, case, scheduler):
    try:
        event(check(case, scheduler))
    except Unfit:
        assume(False)


def check_failures(case, scheduler):
    wanted = rows_of(case["drawn"], case["total"])
    script = Script(case["wrongs"], case["odds"])
    rows = rows_that_leave(case, script, config_of(case, scheduler))
    found = Counter((root, path) for root, path, _, _ in rows)
    assert found - wanted == Counter(), "rows of a failed attempt left the task"
    assert wanted - found == Counter(), "rows were lost"
    if scheduler == "inline" and not any(case["processes"]):
        assert ascending([serial for _, _, serial, _ in rows])
    serials = defaultdict(list)
    for _, _, serial, task in rows:
        serials[task].append(serial)
    assert all(map(ascending, serials.values()))
    return "something failed" if script.failures else "nothing failed"


def check_slow_bolts(case, scheduler):
    """Between threads one bolt's time passes in another one's call: each must be shorter than the time-out there."""
    wanted = rows_of(case["drawn"], case["total"])
    if scheduler == "threads":
        case = {**case, "seconds": [0.0] * 4}
    rows, counts = rows_and_counts(case, Script([["fail"]], 0), config_of(case, scheduler))
    assert Counter((root, path) for root, path, _, _ in rows) == wanted
    assert (counts["spout"]["retries"], counts["spout"]["unsettled"]) == (0, 0)
    for name, each in counts.items():
        assert each["skipped"] == each["failed"] == 0, name
        upstream = [counts[f"bolt{of}" if of >= 0 else "spout"] for of, _ in inputs_of(case["drawn"], name)]
        assert not upstream or each["executed"] == each["acked"] <= sum(up["transferred"] for up in upstream)
    return "slow" if any(case["seconds"]) else "quick"


def inputs_of(drawn, name):
    return () if name == "spout" else drawn[int(name.removeprefix("bolt"))].inputs


def check_dropped(case, scheduler):
    drawn = tuple(Node(node.par, node.inputs, node.deeds) for node in case["drawn"])
    # A time-out would count as a failure, too.
    case = {**case, "drawn": drawn, "batch": None, "seconds": [0] * 4}
    poison = (case["where"] % len(drawn), case["root"] % case["total"])
    wanted = rows_of(drawn, case["total"])
    if hit := reaches(drawn, *poison):
        wanted = Counter({key: count for key, count in wanted.items() if key[0] != poison[1]})
    more = {"topology.max.spout.retries": case["retries"], "topology.dead.letter": "drop"}
    rows = rows_that_leave(case, Script([], 0, poison), config_of(case, scheduler, **more))
    assert Counter((root, path) for root, path, _, _ in rows) == wanted
    return "dropped" if hit else "nothing dropped"


def reaches(drawn, number, root):
    """Whether a tuple of that root comes to that bolt."""
    below = drawn[: number + 1]
    last = Node(1, drawn[number].inputs, (Deed(),))
    return any(key[0] == root and f"/{number}." in key[1] for key in rows_of((*below[:-1], last), root + 1))
