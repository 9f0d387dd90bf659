"""Permits of one limit among several that ask: fair where they are scarce, all of them to one that asks alone."""

import pytest

from pystorm_source.limits.breaker import LONGEST_PROBE, CircuitBreaker
from pystorm_source.limits.state import LimitState
from pystorm_source.options.rate_limit import RateLimit

RATE = 200


@pytest.fixture
def state():
    return LimitState(RateLimit("api", RATE, 1.0), CircuitBreaker(0.5, 5.0), 0.0, fresh=True)


def asked(state, wishes, seconds):
    """Permits that each got, who asks for so many as soon as it may, and again every so many seconds."""
    got, again = dict.fromkeys(wishes, 0), dict.fromkeys(wishes, 0.0)
    for step in range(round(1000 * seconds)):
        now = step / 1000
        for asker, (wanted, every) in wishes.items():
            if again[asker] <= now:
                lease = state.ask(asker, wanted, now)
                got[asker] += lease.slots.number
                again[asker] = max(lease.again, now + every)
    return got


def test_one_that_asks_alone_gets_all(state):
    assert asked(state, {"one": (1000, 0.02)}, 10)["one"] == pytest.approx(0.96 * RATE * 10, rel=0.03)


def test_those_that_want_all_get_equal_shares(state):
    got = asked(state, dict.fromkeys("abcd", (1000, 0.02)), 10)
    assert sum(got.values()) == pytest.approx(0.96 * RATE * 10, rel=0.03)
    assert max(got.values()) < 1.2 * min(got.values()), got


def test_one_that_asks_often_for_many_takes_no_others_share(state):
    got = asked(state, {"greedy": (1000, 0.001), "modest": (5, 0.05)}, 10)
    assert got["modest"] > 0.3 * RATE * 10, got
    assert sum(got.values()) > 0.9 * RATE * 10, got


def test_what_others_do_not_want_is_there_for_one_that_does(state):
    got = asked(state, {"busy": (1000, 0.02), "idle": (1, 0.9)}, 10)
    assert got["busy"] > 0.9 * RATE * 10, got


def test_a_probe_is_given_to_one_alone(state):
    state.breaker.ended(0, 10, 1.0)
    first, second = state.ask("a", 5, 5.9), state.ask("b", 5, 5.9)
    assert (first.slots.number, first.probe) == (1, True)
    assert first.slots.first >= 6.0
    assert second.slots.number == 0
    assert second.again > 5.9
    assert state.probed(first.probe, True, 6.1)
    assert state.ask("b", 5, 6.2).slots.number == 5


def test_those_that_ask_while_a_probe_is_out_get_none_and_move_no_permit(state):
    state.breaker.ended(0, 10, 1.0)
    probe = state.ask("a", 5, 6.0, float("inf"))
    for step in range(100):
        lease = state.ask(step, 5, 6.0 + step / 1000, float("inf"))
        assert (lease.slots.number, lease.again) == (0, probe.slots.first + LONGEST_PROBE)
    assert state.probed(probe.probe, True, 6.1)
    assert state.ask("b", 5, 6.1, float("inf")).slots.first < 6.12


def test_the_probe_of_one_that_has_gone_is_given_to_another_at_once(state):
    state.breaker.ended(0, 10, 1.0)
    assert state.ask("a", 5, 6.0).probe
    assert not state.ask("b", 5, 6.1).probe
    state.left("b")
    assert not state.ask("b", 5, 6.1).probe
    state.left("a")
    assert state.ask("b", 5, 6.2).probe
