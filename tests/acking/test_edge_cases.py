"""The corners of acking, each where Storm's users have met it. Verdicts are of trees; a tree begins at its spout."""

from collections import Counter

import pytest

from pystorm_source import BatchingBolt, Bolt, GlobalStreamId, Grouping, ReliableSpout, Spout, Stream
from pystorm_source.testing import ON, PAUSE
from tests.acking.fed import Acks, Held, Passes, SpoutCalls, feeder, run, settling, spout_of

TEN = {"topology.message.timeout.secs": 10}
NEVER = {"topology.enable.message.timeouts": False}


# --- no spout to notify, and no acker ---


def test_a_tuple_that_nobody_subscribes_to_is_acked_at_once():
    calls = SpoutCalls()
    spout = feeder(calls, [1], ON("other", [2]), outputs=("n long", Stream(["n long"], name="other")))
    result = run(calls, TEN, 50, spout=spout, bolt=Acks.spec(inputs=[spout["other"]]))
    assert sorted(calls.notified) == [("ack", 0), ("ack", 1)]
    assert calls.at["ack", 0] == 0
    assert result.executed["bolt"] == 1


def test_the_verdict_of_a_tuple_without_subscribers_does_not_come_inside_its_emit():
    inside = []

    class Asks(Spout):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.left, self.in_emit = [0, 1, 2], False

        def next_tuple(self):
            if not self.left:
                return False
            self.in_emit = True
            self.emit([1], tup_id=self.left.pop())
            self.in_emit = False

        def ack(self, tup_id):
            inside.append(self.in_emit)

    run(SpoutCalls(), TEN, 50, spout=Asks.spec())
    assert inside == [False] * 3


@pytest.mark.parametrize("verdict", ["ack", "fail", "raise", "never"])
def test_without_ackers_each_emit_is_acked_before_it_returns(verdict):
    """``topology.acker.executors=0``: fail is never called, and nothing times out."""
    calls = SpoutCalls()
    acked_within = []

    class Asks(Spout):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.left = [0, 1, 2]

        def next_tuple(self):
            if not self.left:
                return False
            before = len(calls.notified)
            tup_id = self.left.pop(0)
            self.emit([tup_id], tup_id=tup_id)
            acked_within.append(calls.notified[before:])

        def ack(self, tup_id):
            calls.add("ack", tup_id)

        def fail(self, tup_id):
            calls.add("fail", tup_id)

    spout = Asks.spec()
    bolt = settling(dict.fromkeys(range(3), verdict))
    result = run(calls, {**TEN, "topology.acker.executors": 0}, 50, spout=spout, bolt=bolt.spec(inputs=[spout]))
    assert acked_within == [[("ack", 0)], [("ack", 1)], [("ack", 2)]]
    assert len(calls.notified) == 3
    assert result.executed["bolt"] == 3


def test_a_tuple_without_id_is_told_to_nobody():
    calls = SpoutCalls()
    spout = spout_of(calls, ([1],), ([2],), ([3], "id"))
    bolt = settling({1: "fail", 2: "never"})
    run(calls, TEN, 50, spout=spout, bolt=bolt.spec(inputs=[spout]))
    assert calls.notified == [("ack", "id")]


def test_an_emit_without_anchors_is_of_no_tree():
    class Loose(Bolt):
        outputs = ["n long"]

        def process(self, tup):
            self.emit(tup.values, anchors=[])

    calls = SpoutCalls()
    spout = feeder(calls, [0], [1], [2])
    loose = Loose.spec(inputs=[spout])
    bolt = settling({0: "fail", 1: "never", 2: "raise"})
    result = run(calls, TEN, 50, spout=spout, loose=loose, bolt=bolt.spec(inputs=[loose]))
    assert calls.notified == [("ack", n) for n in range(3)]
    assert result.failed["bolt"] == 2


def test_a_bolt_that_does_not_anchor_by_itself_leaves_the_tree_at_its_ack():
    class Loose(Passes):
        auto_anchor = False

    calls = SpoutCalls()
    spout = feeder(calls, [0])
    loose = Loose.spec(inputs=[spout])
    run(calls, TEN, 50, spout=spout, loose=loose, bolt=settling({0: "never"}).spec(inputs=[loose]))
    assert calls.notified == [("ack", 0)]


# --- anchors ---


class JoinsTwo(Held):
    """Emits one tuple for two that it gets, anchored to both, which it acks."""

    outputs = ["n long"]

    def process(self, tup):
        self.held.append(tup)
        if len(self.held) == 2:
            self.emit([self.held[0].values.n], anchors=self.held)
            for each in self.held:
                self.ack(each)
            self.held = []


@pytest.mark.parametrize(
    ("verdict", "notified"),
    [("ack", [("ack", 0), ("ack", 1)]), ("fail", [("fail", 0), ("fail", 1)]), ("raise", [("fail", 0), ("fail", 1)])],
)
def test_a_tuple_with_two_anchors_settles_both_trees(verdict, notified):
    calls = SpoutCalls()
    spout = feeder(calls, [0], [1])
    join = JoinsTwo.spec(inputs=[spout])
    run(calls, TEN, 50, spout=spout, join=join, bolt=settling({0: verdict}).spec(inputs=[join]))
    assert calls.notified == notified
    assert set(calls.at.values()) == {0}


def test_a_tuple_with_two_anchors_that_is_forgotten_times_both_trees_out():
    calls = SpoutCalls()
    spout = feeder(calls, [0], PAUSE(4), [1])
    join = JoinsTwo.spec(inputs=[spout])
    run(calls, TEN, 50, spout=spout, join=join, bolt=settling({0: "never"}).spec(inputs=[join]))
    assert calls.notified == [("fail", 0), ("fail", 1)]
    assert 14 <= calls.at["fail", 0] < 15 and 14 <= calls.at["fail", 1] < 15


@pytest.mark.parametrize("verdict", ["ack", "fail"])
def test_two_anchors_of_the_same_tree(verdict):
    """Both edges of the joined tuple fall together: the tree is neither done too soon nor never."""
    calls = SpoutCalls()
    spout = feeder(calls, [0])
    left, right = Passes.spec(inputs=[spout]), Passes.spec(inputs=[spout])
    join = JoinsTwo.spec(inputs=[left, right])
    last = settling({0: verdict}).spec(inputs=[join])
    result = run(calls, TEN, 50, spout=spout, left=left, right=right, join=join, last=last)
    assert calls.notified == [(verdict, 0)]
    assert result.executed["last"] == 1
    assert set(calls.at.values()) == {0}


def test_a_tree_is_open_while_the_tuple_with_two_anchors_of_it_is():
    calls = SpoutCalls()
    spout = feeder(calls, [0])
    left, right = Passes.spec(inputs=[spout]), Passes.spec(inputs=[spout])
    join = JoinsTwo.spec(inputs=[left, right])
    run(calls, TEN, 50, spout=spout, left=left, right=right, join=join, last=settling({0: "never"}).spec(inputs=[join]))
    assert calls.notified == [("fail", 0)]
    assert calls.at["fail", 0] >= 10


def test_an_emit_may_be_anchored_to_a_tuple_of_a_call_before():
    class AnchorsToTheFirst(Held):
        outputs = ["n long"]

        def process(self, tup):
            self.held.append(tup)
            self.emit(tup.values, anchors=[self.held[0]])
            if len(self.held) > 1:
                self.ack(tup)
            if len(self.held) == 3:
                self.ack(self.held[0])

    calls = SpoutCalls()
    spout = feeder(calls, [0], [1], [2])
    anchors = AnchorsToTheFirst.spec(inputs=[spout])
    run(calls, TEN, 50, spout=spout, anchors=anchors, last=settling({2: "fail"}).spec(inputs=[anchors]))
    assert sorted(calls.notified) == [("ack", 1), ("ack", 2), ("fail", 0)]


def test_a_tuple_may_be_anchored_to_one_of_its_own_tree_again_and_again():
    """Round and round in a cycle: each round is a new edge of the same tree."""

    class Rounds(Bolt):
        outputs = [Stream(["n long"], name="again"), "n long"]

        def process(self, tup):
            if tup.values.n > 0:
                self.emit([tup.values.n - 1], stream="again")

    calls = SpoutCalls()
    spout = feeder(calls, [50], [3])
    rounds = Rounds.spec(inputs=[spout, GlobalStreamId("rounds", "again")])
    result = run(calls, TEN, 50, spout=spout, rounds=rounds)
    assert sorted(calls.notified) == [("ack", 0), ("ack", 1)]
    assert result.executed["rounds"] == 51 + 4


@pytest.mark.parametrize("verdict", ["ack", "fail"])
def test_anchoring_onto_a_settled_tuple_raises_and_names_both(verdict):
    raised = []

    class TooLate(Held):
        outputs = ["n long"]

        def process(self, tup):
            getattr(self, verdict)(tup)
            try:
                self.emit([7001], anchors=[tup])
            except ValueError as error:
                raised.append((str(error), tup))

    calls = SpoutCalls()
    spout = feeder(calls, [4242])
    late = TooLate.spec(inputs=[spout])
    result = run(calls, TEN, 50, spout=spout, late=late, last=Acks.spec(inputs=[late]))
    ((text, anchor),) = raised
    assert str(anchor.id) in text and "4242" in text  # the anchor
    assert "TooLate" in text  # the component that emits
    assert f"after {verdict}" in text or "after ack/fail" in text
    assert calls.notified == [(verdict, 0)]
    assert result.executed["last"] == 0


class EmitsAtTick(Held):
    """Keeps what it gets until its tick, then emits and acks it."""

    outputs = ["n long"]

    def process(self, tup):
        self.held.append(tup)

    def process_tick(self, tup):
        for each in self.held:
            self.emit(each.values, anchors=[each])
            self.ack(each)
        self.held = []


class FailsAtTick(EmitsAtTick):
    """Keeps what it gets until its tick, then fails number 0 and acks the others."""

    def process_tick(self, tup):
        for each in self.held:
            (self.ack if each.values.n else self.fail)(each)
        self.held = []


def test_anchoring_onto_a_tuple_whose_tree_has_failed_elsewhere_is_no_error():
    """The bolt cannot know. What it emits is of a tree that no spout waits for: no bolt gets it."""
    calls = SpoutCalls()
    spout = feeder(calls, [0], PAUSE(9))
    fails = FailsAtTick.spec(inputs=[spout], config={"topology.tick.tuple.freq.secs": 2})
    late = EmitsAtTick.spec(inputs=[spout], config={"topology.tick.tuple.freq.secs": 5})
    result = run(calls, TEN, 50, spout=spout, fails=fails, late=late, last=Acks.spec(inputs=[late]))
    assert calls.notified == [("fail", 0)]
    assert result.errors == []
    assert (result.executed["late"], result.executed["last"], result.skipped["last"]) == (1, 0, 1)


# --- verdicts ---


@pytest.mark.parametrize(
    ("first", "second", "notified"),
    [("ack", "ack", "ack"), ("ack", "fail", "ack"), ("fail", "ack", "fail"), ("fail", "fail", "fail")],
)
def test_the_first_verdict_wins_and_a_second_is_counted(first, second, notified):
    class Twice(Held):
        def process(self, tup):
            getattr(self, first)(tup)
            getattr(self, second)(tup)
            getattr(self, second)(tup.id)

    calls = SpoutCalls()
    spout = feeder(calls, [0], [1])
    result = run(calls, TEN, 50, spout=spout, bolt=Twice.spec(inputs=[spout]))
    assert calls.notified == [(notified, 0), (notified, 1)]
    assert result.duplicate_verdicts["bolt"] == 4
    assert result.errors == []


def test_a_fail_under_auto_ack_is_a_fail():
    """What streamparse's own quickstart does: fail, then the automatic ack."""

    class FailsThenReturns(Bolt):
        def process(self, tup):
            self.fail(tup)

    calls = SpoutCalls()
    spout = feeder(calls, [0])
    result = run(calls, TEN, 50, spout=spout, bolt=FailsThenReturns.spec(inputs=[spout]))
    assert calls.notified == [("fail", 0)]
    assert result.duplicate_verdicts["bolt"] == 1


def test_one_failed_branch_fails_the_tree_at_once_and_later_acks_are_ignored():
    calls = SpoutCalls()
    spout = feeder(calls, [0], PAUSE(9))
    fails = FailsAtTick.spec(inputs=[spout], config={"topology.tick.tuple.freq.secs": 2})
    later = EmitsAtTick.spec(inputs=[spout], config={"topology.tick.tuple.freq.secs": 5})
    result = run(calls, TEN, 50, spout=spout, fails=fails, later=later)
    assert calls.notified == [("fail", 0)]
    assert calls.at["fail", 0] == 2
    assert result.acked["later"] == 1


def test_two_failed_branches_are_one_fail():
    calls = SpoutCalls()
    spout = feeder(calls, [0])
    bolts = {name: settling({0: "fail"}).spec(inputs=[spout]) for name in ("left", "right")}
    run(calls, TEN, 50, spout=spout, **bolts)
    assert calls.notified == [("fail", 0)]


def test_a_fail_far_down_reaches_the_spout():
    calls = SpoutCalls()
    spout = feeder(calls, [0], [1], [2])
    first = Passes.spec(inputs=[spout])
    second = Passes.spec(inputs={first: Grouping.fields("n")}, par=3)
    last = settling({1: "fail"}).spec(inputs=[second])
    run(calls, TEN, 50, spout=spout, first=first, second=second, last=last)
    assert (calls.acked, calls.failed) == ([0, 2], [1])


def test_every_task_of_an_all_grouping_must_ack():
    calls = SpoutCalls()

    class OneForgets(Bolt):
        auto_ack = False

        def process(self, tup):
            tasks = sorted(int(task) for task, name in self.context["task->component"].items() if name == "bolt")
            if tup.values.n == 0 or self.task_id != tasks[-1]:
                self.ack(tup)

    spout = feeder(calls, [0], [1])
    bolt = OneForgets.spec(inputs={spout: Grouping.ALL}, par=3)
    run(calls, TEN, 50, spout=spout, bolt=bolt)
    assert calls.notified == [("ack", 0), ("fail", 1)]
    assert calls.at["fail", 1] >= 10


def test_a_group_of_a_batching_bolt_settles_as_one():
    class Groups(BatchingBolt):
        exit_on_exception = False

        def group_key(self, tup):
            return tup.values.n % 2

        def process_batch(self, key, tups):
            if key:
                raise ValueError("odd")

    calls = SpoutCalls()
    spout = feeder(calls, *([n] for n in range(6)))
    run(calls, {**TEN, "topology.tick.tuple.freq.secs": 1}, 50, spout=spout, bolt=Groups.spec(inputs=[spout]))
    assert (calls.acked, calls.failed) == ([0, 2, 4], [1, 3, 5])


def test_who_is_left_out_of_a_group_takes_the_other_tuples_of_its_trees_along():
    """One tree has failed, a tuple is of it and of another: nothing of both is left, whichever came first."""
    groups = []

    class JoinsZeroAndOne(Held):
        outputs = ["n long"]

        def process(self, tup):
            self.held.append(tup)
            if tup.values.n == 1:
                self.emit([3], anchors=self.held)
            for each in self.held if tup.values.n else []:
                self.ack(each)

    class Groups(BatchingBolt):
        ticks_between_batches = 0

        def group_key(self, tup):
            return None

        def process_batch(self, key, tups):
            groups.append([tup.values.n for tup in tups])

    calls = SpoutCalls()
    spout = feeder(calls, [0], [1], [2])
    join = JoinsZeroAndOne.spec(inputs=[spout])
    fails = FailsAtTick.spec(inputs=[spout], config={"topology.tick.tuple.freq.secs": 2})
    bolt = Groups.spec(inputs=[spout, join], config={"topology.tick.tuple.freq.secs": 5})
    run(calls, TEN, 50, spout=spout, join=join, fails=fails, bolt=bolt)
    assert groups == [[2]]
    assert (calls.acked, calls.failed) == ([2], [0, 1])
    assert calls.at["fail", 1] == 5


# --- message ids ---


@pytest.mark.parametrize(
    ("verdicts", "notified"),
    [
        ("ack ack", {("ack", "same"): 2}),
        ("ack fail", {("ack", "same"): 1, ("fail", "same"): 1}),
        ("fail fail", {("fail", "same"): 2}),
    ],
)
def test_the_same_message_id_twice_in_flight_is_two_trees(verdicts, notified):
    calls = SpoutCalls()
    spout = spout_of(calls, ([0], "same"), ([1], "same"))
    bolt = settling(dict(enumerate(verdicts.split())))
    run(calls, TEN, 50, spout=spout, bolt=bolt.spec(inputs=[spout]))
    assert Counter(calls.notified) == notified


@pytest.mark.parametrize("tup_id", [0, "", False, (1, "a"), 1.5, b"x", frozenset([1])])
def test_any_value_but_none_is_a_message_id(tup_id):
    calls = SpoutCalls()
    spout = spout_of(calls, ([0], tup_id), ([1], tup_id))
    run(calls, TEN, 50, spout=spout, bolt=settling({1: "fail"}).spec(inputs=[spout]))
    assert calls.notified == [("ack", tup_id), ("fail", tup_id)]


def test_what_a_spout_emits_again_from_fail_is_a_new_tree():
    """Its time-out begins anew, and the verdict of the first one is not that of the second."""
    calls = SpoutCalls()

    class Again(Spout):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.left = [0]

        def next_tuple(self):
            if not self.left:
                return False
            self.emit([self.left.pop()], tup_id="id")

        def ack(self, tup_id):
            calls.add("ack", tup_id)

        def fail(self, tup_id):
            calls.add("fail", tup_id)
            if len(calls.notified) < 3:
                self.emit([len(calls.notified)], tup_id=tup_id)

    spout = Again.spec()
    bolt = settling({0: "fail", 1: "never"})
    result = run(calls, TEN, 50, spout=spout, bolt=bolt.spec(inputs=[spout]))
    assert calls.notified == [("fail", "id"), ("fail", "id"), ("ack", "id")]
    assert 10 <= calls.at["fail", "id"] < 11
    assert result.unsettled["spout"] == 0


def test_a_reliable_spout_emits_a_tuple_again_that_timed_out():
    seen = []

    class Forgets(Bolt):
        auto_ack = False

        def process(self, tup):
            seen.append((tup.values.n, calls.clock.now))
            if sum(n == tup.values.n for n, _ in seen) == 3:
                self.ack(tup)

    class Reliable(ReliableSpout):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.left = [5, 6]

        def next_tuple(self):
            if not self.left:
                return False
            n = self.left.pop(0)
            self.emit([n], tup_id=n)

    calls = SpoutCalls()
    spout = Reliable.spec()
    result = run(calls, TEN, 50, spout=spout, bolt=Forgets.spec(inputs=[spout]))
    assert [(n, int(time)) for n, time in seen] == [(n, time) for time in (0, 10, 20) for n in (5, 6)]
    assert (result.acked["spout"], result.failed["spout"]) == (2, 4)


# --- time ---


def test_an_ack_after_the_time_out_is_ignored():
    class AcksAtTheTick(Held):
        def process(self, tup):
            self.held.append(tup)

        def process_tick(self, tup):
            if len(self.held) == 1:
                self.ack(self.held.pop())

    calls = SpoutCalls()
    spout = feeder(calls, [0], PAUSE(40))
    bolt = AcksAtTheTick.spec(inputs=[spout], config={"topology.tick.tuple.freq.secs": 15})
    result = run(calls, TEN, 50, spout=spout, bolt=bolt)
    assert calls.notified == [("fail", 0)]
    assert 10 <= calls.at["fail", 0] < 11
    assert (result.acked["spout"], result.failed["spout"], result.acked["bolt"]) == (0, 1, 1)


def test_a_late_ack_does_not_settle_the_tree_that_took_its_place():
    """What the bolt holds from before the time-out must not be taken for an edge of the tuple that is emitted again."""
    held = []

    class AcksTheOldOne(Bolt):
        auto_ack = False

        def process(self, tup):
            held.append(tup)
            if len(held) == 2:
                self.ack(held[0])  # of the tree that has timed out

    class Reliable(ReliableSpout):
        outputs = ["n long"]
        max_fails = 1

        def initialize(self, conf, context):
            self.left = [0]

        def next_tuple(self):
            if not self.left:
                return False
            self.emit([self.left.pop()], tup_id="id")

    calls = SpoutCalls()
    spout = Reliable.spec()
    result = run(calls, TEN, 50, spout=spout, bolt=AcksTheOldOne.spec(inputs=[spout]))
    assert len(held) == 2
    assert (result.acked["spout"], result.failed["spout"]) == (0, 2)


def test_without_time_outs_a_tuple_that_nobody_acks_stays_open():
    calls = SpoutCalls()
    spout = feeder(calls, [0], [1], PAUSE(1000))
    result = run(calls, {**TEN, **NEVER}, 50, spout=spout, bolt=settling({0: "never"}).spec(inputs=[spout]))
    assert calls.notified == [("ack", 1)]
    assert result.unsettled["spout"] == 1
    assert result.errors == []


def test_time_outs_may_be_fractions_of_a_second():
    calls = SpoutCalls()
    spout = feeder(calls, [0], PAUSE(0.125), [1])
    config = {"topology.message.timeout.secs": 0.25}
    run(calls, config, 5, spout=spout, bolt=settling({0: "never", 1: "never"}).spec(inputs=[spout]))
    assert calls.notified == [("fail", 0), ("fail", 1)]
    assert 0.25 <= calls.at["fail", 0] < 0.26 and 0.375 <= calls.at["fail", 1] < 0.385


@pytest.mark.parametrize(("verdict", "notified", "at"), [("ack", ("ack", 0), 20), ("never", ("fail", 0), 30)])
def test_the_time_of_a_tuple_begins_when_its_next_tuple_has_returned(verdict, notified, at):
    """However long the spout has waited for what it emits."""
    calls = SpoutCalls()

    class Waits(Spout):
        outputs = ["n long"]

        def next_tuple(self):
            if calls.clock.now >= 20:
                return False
            calls.clock.sleep(20)
            self.emit([0], tup_id=0)

        def ack(self, tup_id):
            calls.add("ack", tup_id)

        def fail(self, tup_id):
            calls.add("fail", tup_id)

    spout = Waits.spec()
    run(calls, TEN, 50, spout=spout, bolt=settling({0: verdict}).spec(inputs=[spout]))
    assert calls.notified == [notified]
    assert at <= calls.at[notified] < at + 0.01


def test_resetting_a_settled_tuple_changes_nothing():
    class ResetsWhatIsOver(Held):
        def process(self, tup):
            self.ack(tup)
            self.reset_timeout(tup)

    calls = SpoutCalls()
    spout = feeder(calls, [0])
    result = run(calls, TEN, 50, spout=spout, bolt=ResetsWhatIsOver.spec(inputs=[spout]))
    assert calls.notified == [("ack", 0)]
    assert result.errors == []


def test_the_time_of_a_tree_begins_at_the_tick_that_processes_its_batch():
    """Not when the clock was last looked at, which between threads is up to 32 ms before: the acker's wheel is."""

    class Groups(BatchingBolt):
        ticks_between_batches = 0

        def group_key(self, tup):
            return 0

        def process_batch(self, key, tups):
            pass

    calls = SpoutCalls()
    spout = feeder(calls, [0], PAUSE(30))
    forgets = settling({0: "never"}).spec(inputs=[spout])
    groups = Groups.spec(inputs=[spout], config={"topology.tick.tuple.freq.secs": 2.483})
    run(calls, {"topology.message.timeout.secs": 10.5}, spout=spout, forgets=forgets, groups=groups)
    assert calls.at["fail", 0] == pytest.approx(2.483 + 10.5, abs=0.003)


def test_a_reset_counts_for_every_tree_of_the_tuple():
    class ResetsOnce(Held):
        def process(self, tup):
            self.held.append(tup)

        def process_tick(self, tup):
            if self.held:
                self.reset_timeout(self.held.pop())

    calls = SpoutCalls()
    spout = feeder(calls, [0], PAUSE(4), [1], PAUSE(3), [2], PAUSE(40))
    join = JoinsTwo.spec(inputs=[spout])
    resets = ResetsOnce.spec(inputs=[join], config={"topology.tick.tuple.freq.secs": 6})
    run(calls, TEN, 50, spout=spout, join=join, resets=resets)
    assert calls.failed == [0, 1, 2]
    assert 16 <= calls.at["fail", 0] < 17 and 16 <= calls.at["fail", 1] < 17  # reset at 6
    assert 17 <= calls.at["fail", 2] < 18


@pytest.mark.parametrize("most", [1, 3])
def test_no_more_trees_are_open_than_max_spout_pending(most, scheduler):
    open_now, highest = [0], [0]

    class Counts(Spout):
        outputs = ["n long"]

        def initialize(self, conf, context):
            self.left = 50

        def next_tuple(self):
            if not self.left:
                return False
            self.left -= 1
            open_now[0] += 1
            highest[0] = max(highest[0], open_now[0])
            self.emit([self.left], tup_id=self.left)

        def ack(self, tup_id):
            open_now[0] -= 1

        fail = ack

    spout = Counts.spec()
    passes = Passes.spec(inputs=[spout])
    last = settling(dict.fromkeys(range(0, 50, 7), "fail")).spec(inputs=[passes])
    made = {"spout": spout, "passes": passes, "last": last}
    result = run(SpoutCalls(), {**TEN, "topology.max.spout.pending": most}, 50, **made)
    assert highest == [most]
    assert (result.acked["spout"], result.failed["spout"]) == (42, 8)


def test_trees_that_time_out_make_room_below_max_spout_pending():
    calls = SpoutCalls()
    spout = spout_of(calls, ([0], 0), ([1], 1), ([2], 2))
    bolt = settling(dict.fromkeys(range(3), "never"))
    config = {"topology.message.timeout.secs": 0.1, "topology.max.spout.pending": 1}
    run(calls, config, 1, spout=spout, bolt=bolt.spec(inputs=[spout]))
    assert calls.notified == [("fail", 0), ("fail", 1), ("fail", 2)]
    assert 0.3 <= calls.at["fail", 2] < 0.35
