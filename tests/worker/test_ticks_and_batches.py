"""Tick tuples, the tick that ends a micro-batch, and bolts that process tuples in groups."""

import pytest

from pystorm_source import BatchingBolt, Bolt, ReliableSpout, Spout, TicklessBatchingBolt
from pystorm_source.clock import ManualClock
from pystorm_source.errors import TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.worker import OutputPlan, Worker
from tests.worker.running import N, Numbers, Pass, above, numbers, pair, topology, worker_of


class Gradual(Spout):
    """Emits what its script says; a float is a pause of so many seconds."""

    outputs = ["n"]
    script = ()
    _pystorm_waits = True

    def initialize(self, conf, context):
        self.left = list(self.script)
        self.verdicts = []
        self.until = 0.0

    def next_tuple(self):
        if self.clock.monotonic() < self.until:
            return
        if not self.left:
            self._pystorm_waits = False
            return
        step = self.left.pop(0)
        if isinstance(step, float):
            self.until = self.clock.monotonic() + step
        else:
            self.emit((step,), step)

    def ack(self, tup_id):
        self.verdicts.append(("ack", tup_id))

    def fail(self, tup_id):
        self.verdicts.append(("fail", tup_id))


class Ticking(Bolt):
    """Notes tuples and ticks in order, the latter as (frequency, time)."""

    outputs = ["n"]

    def initialize(self, conf, context):
        self.seen = []

    def process(self, tup):
        self.seen.append(tup.values[0])

    def process_tick(self, tup):
        assert self.is_tick(tup)
        assert (tup.component, tup.stream, tup.task) == ("__system", "__tick", -1)
        self.seen.append((tup.values[0], round(self.clock.monotonic(), 2)))


class Grouping(BatchingBolt):
    """Notes its batches."""

    outputs = ["key", "n"]

    def initialize(self, conf, context):
        self.seen = []

    def group_key(self, tup):
        return tup.values[0] % 2

    def process_batch(self, key, tups):
        self.seen.append((key, [tup.values[0] for tup in tups]))
        self.emit((key, len(tups)))


def played(script, bolt, config=None, spout=Gradual, seed=None, **attributes):
    """(worker, spout, bolt) after one round over the script under a manual clock."""
    clock = ManualClock()
    made_spout = type("S", (spout,), {"script": script, "clock": clock})
    made_bolt = type("B", (bolt,), {"clock": clock, **attributes})
    # Most are about what is emitted again: what becomes of what is given up has tests of its own.
    dropping = {"topology.dead.letter": "drop"}
    plan = compile_plan(pair(made_bolt, made_spout, config=config), dropping)
    worker = Worker(plan, OutputPlan(N, ()), clock, seed)
    assert list(worker.run_round({})) == []
    instances = {executor.component: executor.instance for executor in worker.executors}
    return worker, instances["s"], instances["b"]


def batches(*arguments, **options):
    return played(*arguments, **options)[2].seen


EVERY_SECOND = {"topology.tick.tuple.freq.secs": 1}


# --- ticks ---


def test_ticks_come_by_the_clock_between_tuples_and_one_more_at_the_end():
    _, _, bolt = played([1, 2, 2.5, 3], Ticking, EVERY_SECOND)
    assert bolt.seen[:2] == [1, 2]
    assert [round(at) for _, at in bolt.seen[2:4]] == [1, 2]
    assert bolt.seen[4] == 3
    assert bolt.seen[5][0] == 0
    assert len(bolt.seen) == 6


@pytest.mark.parametrize(("frequency", "ticks"), [(0.25, 12), (0.5, 6), (1, 3), (2, 1), (60, 0), (0, 0), (None, 0)])
def test_the_frequency_is_the_configured_one(frequency, ticks):
    worker, _, bolt = played([3.1, 1], Ticking, {"topology.tick.tuple.freq.secs": frequency})
    assert worker.report()["components"]["b"]["ticks"] == ticks + 1
    assert {tick[0] for tick in bolt.seen if tick != 1} == ({frequency, 0} if ticks else {0})


def test_bolts_of_different_frequencies_each_get_their_own_ticks():
    clock = ManualClock()
    spout = type("S", (Gradual,), {"script": [3.13, 1], "clock": clock}).spec()
    frequencies = [0.05, 0.1, 0.25, 1 / 3, 0.4, 1, 1.5, 60]
    body = {
        f"b{n}": type("B", (Ticking,), {"clock": clock}).spec(
            inputs=[spout], config={"topology.tick.tuple.freq.secs": frequency}
        )
        for n, frequency in enumerate(frequencies)
    }
    worker = Worker(compile_plan(topology(s=spout, **body)), OutputPlan(N, ()), clock)
    assert list(worker.run_round({})) == []
    seen = {executor.component: executor.instance.seen for executor in worker.executors[1:]}
    for n, frequency in enumerate(frequencies):
        *ticks, value, last = seen[f"b{n}"]
        assert ticks == [(frequency, round(frequency * i, 2)) for i in range(1, int(3.13 / frequency) + 1)]
        assert (value, last) == (1, (0, 3.13))


def test_missed_ticks_are_not_made_up_for():
    class Slow(Ticking):
        def process(self, tup):
            super().process(tup)
            self.clock.advance(10)

    _, _, bolt = played([1, 2, 3], Slow, EVERY_SECOND)
    assert 1 <= len([entry for entry in bolt.seen if isinstance(entry, tuple)]) <= 4


def test_a_bolt_without_process_tick_gets_none():
    worker, _, _ = played([1, 2.5], Pass, EVERY_SECOND)
    assert worker.report()["components"]["b"]["ticks"] == 0


def test_what_is_emitted_at_the_last_tick_runs_through_the_bolts_below_before_theirs():
    order = []

    class Sums(Bolt):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.total = 0

        def process(self, tup):
            self.total += tup.values[0]

        def process_tick(self, tup):
            order.append(self.component_name)
            self.emit((self.total,))
            self.total = 0

    spout = Numbers.spec()
    first = Sums.spec(inputs=[spout])
    second = Sums.spec(inputs=[first])
    third = Sums.spec(inputs=[second])
    worker = worker_of(topology(s=spout, a=first, b=second, c=third), "c")
    assert numbers(worker.run("s", "p", 0, 10)) == [45]
    assert numbers(worker.run("s", "p", 10, 12)) == [21]
    assert order == ["a", "b", "c"] * 2


def test_an_exception_at_a_tick_names_the_method():
    class Raises(Ticking):
        def process_tick(self, tup):
            raise LookupError("at the tick")

    with pytest.raises(TupleFailed, match=r"component 'b', task 2: process_tick\(\) raised LookupError: at the tick"):
        played([1], Raises)


# --- batches by ticks, as pystorm counts them ---


def test_the_first_batch_is_processed_at_the_second_tick():
    """pystorm fires when the counter is greater than ticks_between_batches, not equal."""
    _, _, bolt = played([2, 4, 1.5, 6, 1.0, 8], Grouping, EVERY_SECOND)
    assert bolt.seen == [(0, [2, 4, 6]), (0, [8])]


@pytest.mark.parametrize(
    ("ticks", "expected"), [(0, [[2], [4], [6], [8]]), (1, [[2, 4], [6, 8]]), (2, [[2, 4, 6], [8]])]
)
def test_more_than_ticks_between_batches(ticks, expected):
    script = [0.1, 2, 1.0, 4, 1.0, 6, 1.0, 8, 0.95]
    seen = batches(script, Grouping, EVERY_SECOND, ticks_between_batches=ticks)
    assert [values for _, values in seen] == expected


def test_after_idle_ticks_the_first_tuple_is_processed_at_the_next_tick():
    """The counter goes on while there is nothing to process."""
    _, _, bolt = played([5.5, 2, 1.0, 4], Grouping, EVERY_SECOND)
    assert bolt.seen == [(0, [2]), (0, [4])]


def test_groups_are_processed_in_the_order_of_their_first_tuple_and_hold_theirs_in_order():
    assert batches([1, 2, 3, 4, 5], Grouping) == [(1, [1, 3, 5]), (0, [2, 4])]


def test_one_group_unless_there_is_a_key():
    assert batches([1, 2, 3], type("Plain", (Grouping,), {"group_key": BatchingBolt.group_key})) == [(None, [1, 2, 3])]


def test_the_end_of_a_micro_batch_processes_the_rest_whatever_was_counted():
    assert batches([1, 3], Grouping, EVERY_SECOND, ticks_between_batches=1000) == [(1, [1, 3])]
    assert batches([1, 3], Grouping) == [(1, [1, 3])]


def test_a_bolt_can_tell_the_tick_that_ends_a_range_from_one_that_time_has_brought():
    class Tells(Ticking):
        def process_tick(self, tup):
            assert self.is_tick(tup)
            self.seen.append((self.is_final_tick(tup), *tup.values))

    assert batches([1.5, 1], Tells, EVERY_SECOND) == [(False, 1), 1, (True, 0)]
    assert batches([1.5, 1], Tells) == [1, (True, 0)]


class Counting(Grouping):
    def process_tick(self, tup):
        super().process_tick(tup)
        self.seen.append("tick")


def test_the_tick_that_ends_a_range_is_not_counted():
    """Or the first tick of a minute would find a count that milliseconds have brought."""
    counting = type("Counts", (Counting,), {"outputs": ["n long"]})
    worker = above(counting)
    for _ in range(5):
        assert numbers(worker.run("s", "p", 7, 7)) == []
    bolt = worker.executors[1].instance
    assert bolt.seen == 5 * ["tick"]
    assert bolt._tick_counter == 0


def test_what_is_held_is_processed_at_the_tick_that_ends_a_range_before_the_bolt_goes_on():
    assert batches([1, 3], Counting, ticks_between_batches=1000) == [(1, [1, 3]), "tick"]


def test_batching_bolts_in_a_row_are_all_emptied():
    class Counts(BatchingBolt):
        outputs = ["n long"]

        def process_batch(self, key, tups):
            self.emit((sum(tup.values[0] for tup in tups),))

    spout = Numbers.spec()
    first = Counts.spec(inputs=[spout], par=3)
    second = Counts.spec(inputs=[first])
    worker = worker_of(topology(s=spout, a=first, b=second), "b", overrides={
        "topology.executor.receive.buffer.size": 2, "topology.producer.batch.size": 1})  # fmt: skip
    assert numbers(worker.run("s", "p", 0, 100)) == [sum(range(100))]
    assert numbers(worker.run("s", "p", 100, 101)) == [100]


def test_a_batch_is_acked_when_it_was_processed():
    _, spout, _ = played([2, 4, 1.0, 1.5, 6, 1.0], Grouping, EVERY_SECOND)
    assert spout.verdicts == [("ack", 2), ("ack", 4), ("ack", 6)]


def test_emits_of_a_batch_belong_to_every_tuple_of_the_group():
    class Held(Grouping):
        auto_ack = True

    class Fails(Bolt):
        def process(self, tup):
            if tup.values[0] == 1:
                self.fail(tup)

    clock = ManualClock()
    spout = type("S", (Gradual,), {"script": [1, 2, 3, 4], "clock": clock}).spec()
    bolt = Held.spec(inputs=[spout])
    worker = Worker(compile_plan(topology(s=spout, b=bolt, f=Fails.spec(inputs=[bolt]))), OutputPlan(N, ()), clock)
    list(worker.run_round({}))
    assert sorted(worker.executors[0].instance.verdicts) == [("ack", 2), ("ack", 4), ("fail", 1), ("fail", 3)]


def test_auto_ack_off_leaves_the_acks_to_the_bolt():
    class Picks(Grouping):
        auto_ack = False

        def process_batch(self, key, tups):
            super().process_batch(key, tups)
            self.ack(tups[0])
            self.fail(tups[-1].id)

    worker, spout, _ = played([1, 3, 5], Picks)
    assert spout.verdicts == [("ack", 1), ("fail", 5)]
    counts = worker.report()["components"]
    assert (counts["s"]["unsettled"], counts["b"]["acked"], counts["b"]["failed"]) == (1, 1, 1)


def test_emit_of_a_batching_bolt_answers_none():
    answers = []

    class Asks(Grouping):
        def process_batch(self, key, tups):
            answers.append(self.emit((key, 1), need_task_ids=True))

    played([1], Asks)
    assert answers == [None]


# --- batches by count, by time ---


@pytest.mark.parametrize("base", [BatchingBolt, TicklessBatchingBolt])
def test_batches_by_count(base):
    class Three(base):
        tuples_between_batches = 3
        outputs = ["n"]

        def initialize(self, conf, context):
            self.seen = []

        def process_batch(self, key, tups):
            self.seen.append([tup.values[0] for tup in tups])

    assert batches([1, 2, 3, 4, 5, 6, 7, 8], Three) == [[1, 2, 3], [4, 5, 6], [7, 8]]


def test_a_batch_by_count_holds_all_groups():
    assert batches([1, 2, 3, 5, 4, 6], Grouping, tuples_between_batches=4) == [(1, [1, 3, 5]), (0, [2]), (0, [4, 6])]


def test_a_batch_by_count_has_its_emits_and_acks():
    _, spout, _ = played([1, 3, 5, 7], Grouping, tuples_between_batches=2)
    assert spout.verdicts == [("ack", 1), ("ack", 3), ("ack", 5), ("ack", 7)]


class Timed(TicklessBatchingBolt, Grouping):
    def process_batch(self, key, tups):
        Grouping.process_batch(self, key, tups)


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(0.5, [[2], [4], [6], [8]]), (2, [[2, 4], [6, 8]]), (2.5, [[2, 4, 6], [8]]), (100, [[2, 4, 6, 8]])],
)
def test_batches_by_time(seconds, expected):
    script = [0.1, 2, 1.0, 4, 1.0, 6, 1.0, 8, 0.1]
    for config in (None, EVERY_SECOND):  # ticks do not matter
        seen = batches(script, Timed, config, secs_between_batches=seconds)
        assert [values for _, values in seen] == expected


# --- failures ---


class Breaks(Grouping):
    """Raises for the group of even numbers, the first time."""

    broken = 0

    def process_batch(self, key, tups):
        if key == 0 and self.broken == 0:
            self.broken += 1
            raise LookupError("even")
        super().process_batch(key, tups)


@pytest.mark.parametrize("by", ["end", "tick", "count", "time"])
def test_an_exception_names_batch_tuple_and_fails_all_that_is_held(by):
    base = Timed if by == "time" else Grouping
    attributes = {"count": {"tuples_between_batches": 4}, "time": {"secs_between_batches": 1}}.get(by, {})
    script = [1, 2, 3, 4] if by in ("end", "count") else [1, 2, 3, 4, 2.5]
    clock = ManualClock()
    worker = Worker(
        compile_plan(
            pair(
                type("B", (Breaks, base), {**attributes}),
                type("S", (Gradual,), {"script": script, "clock": clock}),
                config=EVERY_SECOND if by == "tick" else None,
            )
        ),
        OutputPlan(N, ()),
        clock,
    )
    with pytest.raises(
        TupleFailed, match=r"component 'b', task 2: process_batch\(\) raised LookupError: even; tuple \(2,\)"
    ):
        list(worker.run_round({}))
    assert worker.report()["components"]["b"]["failed"] == 2  # 1 and 3 were processed before
    assert worker.report()["components"]["b"]["acked"] == 2


def test_only_the_group_of_the_exception_fails_where_the_bolt_goes_on():
    worker, spout, bolt = played([2, 1, 4, 3], Breaks, exit_on_exception=False)
    assert sorted(spout.verdicts) == [("ack", 1), ("ack", 3), ("fail", 2), ("fail", 4)]
    assert bolt.seen == [(1, [1, 3])]
    assert worker.report()["components"]["b"]["errors"] == 1
    assert [str(failure.__cause__) for failure in worker.errors] == ["even"]


def test_no_empty_group_comes_after_a_failure():
    _, _, bolt = played([1, 2, 3, 2.2, 5, 4, 2.2, 7], Breaks, EVERY_SECOND, exit_on_exception=False)
    assert all(values for _, values in bolt.seen)
    assert sorted(n for _, values in bolt.seen for n in values) == [1, 3, 4, 5, 7]


def test_groups_behind_the_failed_one_are_processed_at_the_next_tick():
    _, _, bolt = played([2, 1, 2.1, 1.0, 3], Breaks, EVERY_SECOND, exit_on_exception=False)
    assert bolt.seen == [(1, [1]), (1, [3])]


def test_auto_fail_off_fails_nothing():
    worker, spout, _ = played([2, 4], Breaks, exit_on_exception=False, auto_fail=False)
    assert spout.verdicts == []
    assert worker.report()["components"]["s"]["unsettled"] == 2


def test_a_timer_goes_on_after_an_exception():
    """pystorm's TicklessBatchingBolt stalls for ever here: its thread has died."""

    class Never(Timed):
        def process_batch(self, key, tups):
            self.seen.append(len(tups))
            raise LookupError("again")

    _, spout, bolt = played([1, 1.1, 3, 1.1, 5], Never, exit_on_exception=False, secs_between_batches=1)
    assert bolt.seen == [1, 1, 1]
    assert spout.verdicts == [("fail", 1), ("fail", 3), ("fail", 5)]


def test_a_batch_of_a_partitioned_spouts_tuples_comes_again_where_the_bolt_goes_on():
    worker = above(type("B", (Breaks,), {"exit_on_exception": False, "outputs": ["key long", "n long"]}))
    list(worker.run("s", "p", 0, 4))
    held = [executor.instance.seen for executor in worker.executors if executor.component == "b"]
    assert [sorted(seen) for seen in held] == [[(0, [0, 2]), (1, [1, 3])]]
    assert worker.report()["components"]["s"]["retries"] == 2


# --- exceptions of bolts that go on ---


class Odd(Bolt):
    outputs = ["n"]
    exit_on_exception = False

    def process(self, tup):
        if tup.values[0] % 2 == 0:
            raise LookupError(f"no {tup.values[0]}")
        self.emit(tup.values)


def test_a_bolt_that_goes_on_fails_the_tuple_and_reports():
    worker, spout, _ = played([1, 2, 3, 4], Odd)
    assert sorted(spout.verdicts) == [("ack", 1), ("ack", 3), ("fail", 2), ("fail", 4)]
    assert [(f.component, f.method, f.tuple.values, str(f.__cause__)) for f in worker.errors] == [
        ("b", "process", (2,), "no 2"), ("b", "process", (4,), "no 4")]  # fmt: skip
    assert worker.report()["components"]["b"]["errors"] == 2


def test_errors_are_bounded_and_counted_in_full():
    worker, _, _ = played([2] * 250, Odd)
    assert worker.report()["components"]["b"]["errors"] == 250
    assert len(worker.errors) == 100


def test_an_exception_after_a_verdict_changes_nothing():
    class Acks(Odd):
        def process(self, tup):
            self.ack(tup)
            super().process(tup)

    class FailsFirst(Odd):
        def process(self, tup):
            self.fail(tup)
            raise LookupError("too late")

    assert played([2], Acks)[1].verdicts == [("ack", 2)]
    assert played([2], FailsFirst)[1].verdicts == [("fail", 2)]


def test_the_flags_may_stand_on_the_instance():
    class Late(Bolt):
        outputs = ["n"]

        def initialize(self, conf, context):
            self.exit_on_exception = False
            self.auto_fail = False
            self.auto_ack = False

        def process(self, tup):
            if tup.values[0] == 2:
                raise LookupError("two")

    worker, spout, _ = played([1, 2], Late)
    assert spout.verdicts == []
    assert len(worker.errors) == 1


def test_what_a_component_reports_itself_is_an_error_too():
    class Reports(Bolt):
        outputs = ["n"]

        def process(self, tup):
            self.raise_exception(LookupError("mine"), tup)
            self.report_metric("seen", tup.values[0])

    worker, spout, _ = played([1, 5], Reports)
    assert spout.verdicts == [("ack", 1), ("ack", 5)]
    assert [(f.method, str(f.__cause__)) for f in worker.errors] == [("raise_exception", "mine")] * 2
    assert worker.report()["metrics"] == {"b": {"seen": {"count": 2, "last": 5, "sum": 6}}}


# --- reliable spouts ---


class Reliable(ReliableSpout):
    outputs = ["n"]
    script = ()

    def initialize(self, conf, context):
        self.left = list(self.script)

    def next_tuple(self):
        if self.left:
            n = self.left.pop(0)
            self.emit((n,), n)


class FailsOften(Bolt):
    """Fails 2 so many times, and notes what it gets."""

    outputs = ["n"]
    times = 0

    def initialize(self, conf, context):
        self.seen = []

    def process(self, tup):
        self.seen.append(tup.values[0])
        if tup.values[0] == 2 and self.seen.count(2) <= self.times:
            self.fail(tup)


@pytest.mark.parametrize(("times", "emissions"), [(0, 1), (1, 2), (3, 4), (4, 4), (100, 4)])
def test_a_reliable_spout_emits_at_most_once_and_max_fails_times(times, emissions):
    worker, spout, bolt = played([1, 2, 3], FailsOften, spout=Reliable, times=times)
    assert bolt.seen.count(2) == emissions
    assert (bolt.seen.count(1), bolt.seen.count(3)) == (1, 1)
    assert spout.unacked_tuples == {} == dict(spout.failed_tuples)
    counts = worker.report()["components"]["s"]
    assert (counts["acked"], counts["failed"]) == (2 + (times < 4), min(times, 4))


def test_max_fails_is_the_users():
    assert played([2], FailsOften, spout=type("R", (Reliable,), {"max_fails": 0}), times=9)[2].seen == [2]
    assert played([2], FailsOften, spout=type("R", (Reliable,), {"max_fails": 7}), times=9)[2].seen == [2] * 8


def test_an_override_of_emit_sees_the_replay():
    class Marks(Reliable):
        emits = 0

        def emit(self, tup, tup_id=None, **kwargs):
            type(self).emits += 1
            return super().emit(tup, tup_id=tup_id, **kwargs)

    _, spout, _ = played([2], FailsOften, spout=Marks, times=2)
    assert type(spout).emits == 3


def test_a_replay_through_a_batching_bolt_is_flushed_again():
    class FailsOnce(Grouping):
        def process_batch(self, key, tups):
            self.seen.append([tup.values[0] for tup in tups])
            if len(self.seen) == 1:
                for tup in tups:
                    self.fail(tup)

    _, spout, bolt = played([1, 3], FailsOnce, spout=Reliable)
    assert bolt.seen == [[1, 3], [1, 3]]
    assert spout.unacked_tuples == {}


def test_an_emit_without_an_id_is_refused():
    class NoId(Reliable):
        def next_tuple(self):
            self.emit((1,))

    with pytest.raises(TupleFailed, match="You must provide a tuple ID when emitting with a ReliableSpout"):
        played([], Pass, spout=NoId)


def test_an_unknown_id_is_logged_and_no_error(caplog):
    _, spout, _ = played([1], Pass, spout=Reliable)
    spout.ack("nobody")
    spout.fail("nobody")
    assert [r.getMessage() for r in caplog.records if r.levelname == "ERROR"] == [
        "Received ack for unknown tuple ID: 'nobody'", "Received fail for unknown tuple ID: 'nobody'"]  # fmt: skip


# --- what is said once ---


def test_acks_that_can_never_come_are_told_once(caplog):
    class NoIds(Gradual):
        def next_tuple(self):
            if self.left:
                self.emit((self.left.pop(0),))
            self._pystorm_waits = False

    worker, _, _ = played([1, 2], Pass, spout=NoIds)
    list(worker.run_round({}))
    assert [r.getMessage() for r in caplog.records if "never called" in r.getMessage()] == [
        "component 's', task 1: defines ack or fail, which are never called: give emit a tup_id"]  # fmt: skip


def test_tuples_without_a_verdict_are_told(caplog):
    played([1, 2], type("Holds", (Pass,), {"auto_ack": False, "process": lambda self, tup: None}))
    assert "has 2 tuples that were neither acked nor failed" in caplog.text


# --- turns at random ---


@pytest.mark.parametrize("seed", range(8))
def test_a_seed_shuffles_the_turns_and_loses_nothing(seed):
    _, spout, bolt = played(list(range(50)), Grouping, seed=seed, tuples_between_batches=7)
    assert sorted(n for _, values in bolt.seen for n in values) == list(range(50))
    assert sorted(spout.verdicts) == [("ack", n) for n in range(50)]
    again = played(list(range(50)), Grouping, seed=seed, tuples_between_batches=7)[2].seen
    assert again == bolt.seen
