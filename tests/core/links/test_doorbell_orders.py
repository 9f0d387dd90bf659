"""No ring of a doorbell is lost, in any order of two processors' steps: all of them are tried, in a model.

Each processor runs its program step by step, and keeps its stores in a buffer, oldest first; they reach the memory at
any later moment. That is x86-64's order; an exchange first empties the buffer. `doorbell.h` has the first pair of
programs. The others are what it must not be.
"""

from typing import NamedTuple

import pytest

AWAKE, SLEEPS = 0, 1

# (what, word, value). "look" ends a program where the word is not 0; "ring" writes to the eventfd if the last value
# that was read is SLEEPS; "poll" waits until the eventfd has been written to.
SLEEPER = [("exchange", "bell", SLEEPS), ("look", "tail", None), ("poll", None, None)]
RINGER = [("store", "tail", 1), ("exchange", "bell", AWAKE), ("ring", None, None)]
RINGER_LOADS = [("store", "tail", 1), ("load", "bell", None), ("ring", None, None)]
SLEEPER_STORES = [("store", "bell", SLEEPS), ("look", "tail", None), ("poll", None, None)]
SLEEPER_LOOKS_FIRST = [("look", "tail", None), ("exchange", "bell", SLEEPS), ("poll", None, None)]
RINGS_FIRST = [("exchange", "bell", AWAKE), ("ring", None, None), ("store", "tail", 1)]


class Side(NamedTuple):
    """A processor: its next step, its stores that no one else sees yet, what it read last."""

    at: int = 0
    buffer: tuple[tuple[str, int], ...] = ()
    read: int = 0


class State(NamedTuple):
    sides: tuple[Side, Side]
    tail: int = 0
    bell: int = AWAKE
    rung: bool = False


def stuck(sleeper, ringer) -> list[State]:
    """The states in which nothing can go on and the sleeper has not come to its end."""
    programs, found = (sleeper, ringer), []
    waiting, seen = [State((Side(), Side()))], set()
    while waiting:
        state = waiting.pop()
        if state in seen:
            continue
        seen.add(state)
        following = [after for who in (0, 1) for after in steps(state, who, programs[who])]
        waiting += following
        if not following and state.sides[0].at < len(sleeper):
            found.append(state)
    return found


def steps(state: State, who: int, program) -> list[State]:
    side, after = state.sides[who], []
    if side.buffer:
        (word, value), *rest = side.buffer
        after.append(changed(state, who, side._replace(buffer=tuple(rest)), **{word: value}))
    if side.at == len(program):
        return after
    what, word, value = program[side.at]
    next_one = side._replace(at=side.at + 1)
    own = dict(side.buffer).get(word, getattr(state, word) if word else 0)
    if what == "store":
        after.append(changed(state, who, next_one._replace(buffer=(*side.buffer, (word, value)))))
    elif what == "load":
        after.append(changed(state, who, next_one._replace(read=own)))
    elif what == "look":
        after.append(changed(state, who, next_one._replace(at=len(program)) if own else next_one))
    elif what == "exchange" and not side.buffer:
        after.append(changed(state, who, next_one._replace(read=own), **{word: value}))
    elif what == "ring":
        after.append(changed(state, who, next_one, rung=state.rung or side.read == SLEEPS))
    elif what == "poll" and state.rung:
        after.append(changed(state, who, next_one))
    return after


def changed(state: State, who: int, side: Side, **words) -> State:
    sides = (side, state.sides[1]) if who == 0 else (state.sides[0], side)
    return state._replace(sides=sides, **words)


def test_no_ring_is_lost():
    assert stuck(SLEEPER, RINGER) == []


@pytest.mark.parametrize(
    ("sleeper", "ringer"),
    [
        pytest.param(SLEEPER, RINGER_LOADS, id="the ringer only loads the state"),
        pytest.param(SLEEPER_STORES, RINGER, id="the sleeper only stores the state"),
        pytest.param(SLEEPER_LOOKS_FIRST, RINGER, id="the sleeper does not look again"),
        pytest.param(SLEEPER, RINGS_FIRST, id="it rings before it publishes"),
    ],
)
def test_a_weaker_bell_loses_rings(sleeper, ringer):
    assert stuck(sleeper, ringer)
