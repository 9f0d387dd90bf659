"""Delayed operations: each completes once, or expires once, and what has completed does not stay in memory."""

import gc
import os
import weakref

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, multiple, rule

from cython_core.timing.timers import DelayedOperation, Purgatory

TICK = 0.001


class Waits(DelayedOperation):
    """Completes once ``ready``; writes down what it is told."""

    def __init__(self, timeout=None, ready=False):
        super().__init__(timeout)
        self.ready = ready
        self.tries = 0
        self.told = []

    def try_complete(self):
        self.tries += 1
        return self.ready and self.force_complete()

    def on_complete(self):
        self.told.append("complete")

    def on_expiration(self):
        self.told.append("expiration")


def test_what_is_ready_completes_at_once_and_is_not_watched():
    purgatory = Purgatory()
    operation = Waits(1, ready=True)
    assert purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.told == ["complete"] and operation.completed and not operation.expired
    assert (purgatory.watched, purgatory.pending, purgatory.keys) == (0, 0, 0)
    assert purgatory.next_due == float("inf")


def test_any_of_its_keys_completes_an_operation_once():
    purgatory = Purgatory()
    operation = Waits(1)
    assert not purgatory.try_complete_else_watch(operation, ["a", "b", "b"])
    assert purgatory.check_and_complete("a") == 0
    operation.ready = True
    assert purgatory.check_and_complete("elsewhere") == 0
    assert purgatory.check_and_complete("b") == 1
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.advance(10) == 0
    assert operation.told == ["complete"]
    assert not operation.force_complete() and not operation.cancel()
    assert (purgatory.watched, purgatory.pending, purgatory.keys) == (0, 0, 0)


def test_an_operation_expires_once_never_early_and_at_most_a_tick_late():
    purgatory = Purgatory(now=5.0)
    operation = Waits(0.25)
    purgatory.try_complete_else_watch(operation, ["a"], now=6.0)
    assert purgatory.advance(6.25 - 1e-9) == 0
    assert purgatory.advance(6.25 + TICK) == 1
    assert operation.told == ["complete", "expiration"]
    assert operation.completed and operation.expired and not operation.force_complete()


@pytest.mark.parametrize("began", [0.0, 0.033, 1.1, 12345.678, 3e6 + 0.033, 9e7 + 1 / 3])
def test_at_its_next_time_something_happens(began):
    """Whatever seconds lose as binary fractions: a thread that sleeps until then must not wake in vain for ever."""
    purgatory = Purgatory(now=began)
    operation = Waits(1)
    purgatory.try_complete_else_watch(operation, ["a"])
    steps = []
    while not operation.expired:
        purgatory.advance(purgatory.next_due)
        assert purgatory.next_due not in steps
        steps.append(purgatory.next_due)


def test_what_is_due_when_it_is_watched_expires():
    purgatory = Purgatory(now=1.0)
    operation = Waits(0)
    assert not purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.expired or purgatory.advance(1.0 + TICK) == 1
    assert operation.told == ["complete", "expiration"]


def test_without_a_timeout_nothing_expires():
    purgatory = Purgatory()
    operation = Waits()
    purgatory.try_complete_else_watch(operation, ["a"])
    assert operation.timeout is None and purgatory.next_due == float("inf")
    assert purgatory.advance(1e9) == 0 and purgatory.pending == 1


def test_cancelled_operations_hear_nothing():
    purgatory = Purgatory()
    first, second, other = Waits(1), Waits(1), Waits(1)
    for operation, keys in ((first, "ab"), (second, "a"), (other, "b")):
        purgatory.try_complete_else_watch(operation, keys)
    assert first.cancel() and second.cancel() and not first.cancel()
    assert first.cancelled and not first.completed
    assert purgatory.pending == 1
    assert purgatory.advance(2) == 1 and other.expired
    assert first.told == second.told == []


def test_what_raises_while_it_tries_is_watched_on_and_so_are_the_others():
    class Raises(Waits):
        def try_complete(self):
            if self.ready:
                raise OSError("gone")
            return False

    purgatory = Purgatory()
    bad, good = Raises(1), Waits(1)
    purgatory.try_complete_else_watch(bad, ["a"])
    purgatory.try_complete_else_watch(good, ["a"])
    bad.ready = good.ready = True
    with pytest.raises(OSError, match="gone"):
        purgatory.check_and_complete("a")
    assert purgatory.pending == 2
    bad.ready = False
    assert purgatory.check_and_complete("a") == 1 and good.completed


def test_what_raises_when_it_expires_leaves_the_others_to_the_next_call():
    class Raises(Waits):
        def on_expiration(self):
            raise OSError("gone")

    purgatory = Purgatory()
    operations = [Raises(1), Waits(2)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a"])
    with pytest.raises(OSError, match="gone"):
        purgatory.advance(5)
    assert purgatory.advance(5) == 1
    assert all(operation.expired for operation in operations)


def test_an_operation_that_completes_may_put_in_others_of_the_same_key():
    purgatory = Purgatory()

    class Again(Waits):
        def on_complete(self):
            super().on_complete()
            self.next = Waits(1)
            purgatory.try_complete_else_watch(self.next, ["a"])
            assert purgatory.check_and_complete("a") == 0

    operation = Again(1)
    purgatory.try_complete_else_watch(operation, ["a"])
    operation.ready = True
    assert purgatory.check_and_complete("a") == 1
    operation.next.ready = True
    assert purgatory.check_and_complete("a") == 1
    assert (purgatory.watched, purgatory.keys) == (0, 0)


@pytest.mark.parametrize(
    "keys, error, text",
    [([], ValueError, "one key or several"), ([[]], TypeError, "unhash"), ([1, []], TypeError, "unhash")],
)
def test_wrong_keys_are_refused_and_leave_nothing_behind(keys, error, text):
    purgatory = Purgatory()
    with pytest.raises(error, match=text):
        purgatory.try_complete_else_watch(Waits(), keys)
    assert (purgatory.watched, purgatory.pending, purgatory.keys) == (0, 0, 0)


def test_an_operation_goes_into_one_purgatory_once():
    operation = Waits(1)
    Purgatory().try_complete_else_watch(operation, ["a"])
    with pytest.raises(ValueError, match="one purgatory, once; Given: "):
        Purgatory().try_complete_else_watch(operation, ["a"])


@pytest.mark.parametrize("make", [lambda: Waits(-1), lambda: Waits(float("nan")), lambda: Purgatory(tick=0)])
def test_wrong_times_are_refused(make):
    with pytest.raises(ValueError, match="Given: "):
        make()


def test_completed_operations_are_purged_however_long_their_key_lasts():
    """The last of a million requests is held with at most an interval of those before it."""
    purgatory = Purgatory(purge_interval=1000)
    for_ever = Waits()
    purgatory.try_complete_else_watch(for_ever, ["task"])
    most, number = 0, 1_000_000 if os.environ.get("PYSTORM_DEEP") else 20_000
    for i in range(number):
        operation = DelayedOperation(30)
        purgatory.try_complete_else_watch(operation, ["task", i % 7], i * 1e-6)
        operation.force_complete()
        most = max(most, purgatory.watched)
    assert most <= 1003
    assert purgatory.pending == 1
    assert number / 1001 - 1 <= purgatory.purges <= number / 999
    purgatory.purge()
    assert (purgatory.watched, purgatory.keys) == (1, 1)


def test_purges_cost_a_bounded_look_at_each_operation_however_many_are_pending():
    purgatory = Purgatory(purge_interval=10)
    pending = [DelayedOperation(30) for _ in range(5_000)]
    for operation in pending:
        purgatory.try_complete_else_watch(operation, ["task"])
    for _ in range(10_000):
        operation = DelayedOperation(30)
        purgatory.try_complete_else_watch(operation, ["task"])
        operation.force_complete()
    assert purgatory.purges == 1
    assert purgatory.watched <= 2 * purgatory.pending + 1


def test_a_purgatory_that_is_given_up_keeps_nothing_alive():
    class Payload:
        pass

    purgatory, operation = Purgatory(), Waits(30)
    operation.payload = Payload()
    operation.purgatory = purgatory  # a cycle, by way of the list that watches it
    gone = weakref.ref(operation.payload)
    purgatory.try_complete_else_watch(operation, ["a"])
    del purgatory, operation
    gc.collect()
    assert gone() is None


def test_an_operation_may_outlive_its_purgatory():
    purgatory, operation = Purgatory(), Waits(30)
    purgatory.try_complete_else_watch(operation, ["a"])
    del purgatory
    gc.collect()
    assert operation.force_complete() and operation.told == ["complete"]


class AgainstTheModel(RuleBasedStateMachine):
    """The model looks at every operation at every step."""

    operations = Bundle("operations")
    KEYS = st.lists(st.integers(0, 4), min_size=1, max_size=4)

    def __init__(self):
        super().__init__()
        self.now = 3.0
        self.purgatory = Purgatory(now=self.now, purge_interval=3)
        self.model = {}  # operation → [keys, expiry, what it should have been told, outcome]

    def settle(self, operation, outcome):
        entry = self.model[operation]
        if entry[3] == "pending":
            entry[3] = outcome
            entry[2] += {"completed": ["complete"], "expired": ["complete", "expiration"]}.get(outcome, [])

    def of_key(self, key):
        return [o for o, entry in self.model.items() if entry[3] == "pending" and key in entry[0]]

    @rule(target=operations, keys=KEYS, timeout=st.none() | st.integers(0, 700), ready=st.booleans())
    def watch(self, keys, timeout, ready):
        operation = Waits(None if timeout is None else timeout / 100, ready)
        expiry = float("inf") if timeout is None else self.now + timeout / 100
        self.model[operation] = [set(keys), expiry, [], "pending"]
        if ready:
            self.settle(operation, "completed")
        assert self.purgatory.try_complete_else_watch(operation, keys, self.now) == ready
        if operation.expired:
            assert timeout == 0
            self.settle(operation, "expired")
        return operation

    @rule(operation=operations)
    def make_ready(self, operation):
        operation.ready = True

    @rule(operation=operations)
    def force(self, operation):
        assert operation.force_complete() == (self.model[operation][3] == "pending")
        self.settle(operation, "completed")

    @rule(operation=operations)
    def cancel(self, operation):
        assert operation.cancel() == (self.model[operation][3] == "pending")
        self.settle(operation, "cancelled")

    @rule(key=st.integers(0, 5))
    def check(self, key):
        ready = [operation for operation in self.of_key(key) if operation.ready]
        assert self.purgatory.check_and_complete(key) == len(ready)
        for operation in ready:
            self.settle(operation, "completed")

    @rule(hundredths=st.integers(0, 400))
    def advance(self, hundredths):
        self.now += hundredths / 100
        expired = self.purgatory.advance(self.now)
        seen = 0
        for operation, (_, expiry, _, outcome) in self.model.items():
            if outcome == "pending" and (operation.expired or expiry <= self.now - TICK):
                assert operation.expired and expiry <= self.now
                self.settle(operation, "expired")
                seen += 1
        assert expired == seen

    @rule()
    def purge(self):
        self.purgatory.purge()
        assert self.purgatory.watched == self.purgatory.pending
        assert self.purgatory.keys == len({k for e in self.model.values() if e[3] == "pending" for k in e[0]})

    @rule(target=operations)
    def nothing(self):
        return multiple()

    @invariant()
    def as_the_model_has_it(self):
        pending = [o for o, entry in self.model.items() if entry[3] == "pending"]
        assert self.purgatory.pending == len(pending)
        assert self.purgatory.watched >= len(pending)
        expiries = [self.model[o][1] for o in pending]
        assert self.purgatory.next_due <= min(expiries, default=float("inf")) + TICK
        for operation, (_, _, told, outcome) in self.model.items():
            assert operation.told == told
            assert operation.completed == (outcome in ("completed", "expired"))
            assert operation.cancelled == (outcome == "cancelled")


TestAgainstTheModel = AgainstTheModel.TestCase
TestAgainstTheModel.settings = settings(
    max_examples=2_000 if os.environ.get("PYSTORM_DEEP") else 40,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
