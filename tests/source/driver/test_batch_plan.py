"""Where a micro-batch ends, for any sources, limits, budgets and times."""

from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.api import Topology
from pystorm_source.plan import compile_plan
from pystorm_source.source.admission.controller import AdmissionState, Observation, decide, settings_of
from pystorm_source.source.admission.limits import Limits
from pystorm_source.source.admission.saved_state import state_of
from pystorm_source.source.admission.trigger_interval import TriggerInterval
from pystorm_source.source.driver.batch_plan import PlanState, Seen, plan
from pystorm_source.source.offsets.micro_batch import capped, waiting
from pystorm_source.source.offsets.offsets import Key, Offsets, ranges
from pystorm_source.source.offsets.positions import EARLIEST, Positions
from pystorm_source.source.request import ReadRequest
from tests.source.columns import flat, section, world_of
from tests.source.micro_batches import SPOUT
from tests.source.topologies import NumberSpout


class SlowSpout(NumberSpout):
    initial_rate = 100


class OneSpout(Topology):
    s = SlowSpout.spec()


def request_of(**options):
    told = {"batch.target.millis": "1000", "maxtriggerdelay": "60s"}
    return ReadRequest.of(told | {key.replace("__", "."): value for key, value in options.items()}, "planned", PLAN)


PLAN = compile_plan(OneSpout)
REQUEST = request_of()
EARLY = Positions("startingOffsets", EARLIEST)
OFF, ON = PlanState(controlled=False), PlanState(controlled=True)
NEW, FREE = Offsets(), Limits()
KEYS = st.builds(Key, st.just(SPOUT), st.sampled_from("abcde"))
HEADS = st.dictionaries(KEYS, st.integers(0, 500))
MOST = st.none() | st.integers(1, 600)
LIMITS = st.builds(Limits, MOST, MOST, st.none() | st.integers(1, 4), st.none() | st.integers(1, 90))
PAUSED = st.sampled_from([{}, {"api": 2.5}])
RATES = st.sampled_from([{}, {SPOUT: {"common": 7, "slots": 2}}, {SPOUT: {"common": 90_000}}])
A, B = Key(SPOUT, "a"), Key(SPOUT, "b")


def planned(heads, at=NEW, limits=FREE, state=OFF, now=0.0, request=REQUEST, aligns=None, cap=None, **known):
    """If partitions reach up to ``heads``, or a query of Trigger.AvailableNow up to ``cap``."""
    source = world_of({key: (0, head) for key, head in heads.items()})
    waits = waiting(at, source, EARLY, lambda key, what: None)
    readable = waits if cap is None else capped(waits, section(cap))
    seen = Seen(now, now + 0.123, source, waits, readable, aligns or {}, frozen=cap is not None, **known)
    return plan(request, at, seen, limits, state)


def at_of(heads, rates=None):
    """An offset that a run before has left."""
    return Offsets(section(heads), pinned=True, admission=rates or {})


def taken(made):
    return made.ends - made.seen.readable.start


@given(HEADS, HEADS, LIMITS, st.booleans(), RATES, PAUSED, st.booleans(), st.none() | HEADS)
def test_never_behind_the_offset_beyond_a_head_or_over_a_limit(
    before, heads, limits, controlled, rates, paused, by_limit, cap
):
    at = at_of(before, rates)
    made = planned(
        before | heads, at, limits, PlanState(controlled), cap=cap, by_limit=by_limit, paused=paused, now=5.0
    )
    ends, reach = flat(made.offsets.offsets), {key: heads.get(key, before.get(key)) for key in before | heads}
    assert all(ends[key] >= before[key] for key in before)
    assert all(ends[key] <= max(reach[key], before.get(key, 0)) for key in ends)
    assert cap is None or all(ends[key] <= max(cap.get(key, 0), before.get(key, 0)) for key in ends)
    moved = taken(made)
    assert limits.total is None or moved.sum() <= limits.total
    assert limits.per_partition is None or (moved <= limits.per_partition).all()
    assert limits.partitions is None or (moved > 0).sum() <= limits.partitions
    if controlled and (by_limit or rates):
        waits = made.seen.readable
        seen = Observation(5.0, 5.123, waits.index.names, waits.head - waits.start)
        assert (moved <= decide(state_of(at.admission), seen, settings_of(PLAN, REQUEST.options))[1].offsets).all()


@given(HEADS, LIMITS, st.booleans(), PAUSED)
def test_the_same_question_has_the_same_answer_and_changes_nothing(heads, limits, controlled, paused):
    state = PlanState(controlled)
    one, two = (planned(heads, limits=limits, state=state, paused=paused) for _ in range(2))
    assert one.offsets.to_json() == two.offsets.to_json()
    assert (one.throttling, one.state.waits_since) == (two.throttling, two.state.waits_since)
    assert (state.admission, state.measured, state.waits_since, state.has_planned) == (None, None, None, False)


@given(HEADS, MOST, MOST, st.integers(0, 300), st.integers(0, 300), st.booleans())
def test_larger_limits_read_no_less(heads, most, per_partition, more, more_each, controlled):
    state = PlanState(controlled)
    less = planned(heads, limits=Limits(most, per_partition), state=state)
    larger = Limits(most and most + more, per_partition and per_partition + more_each)
    assert taken(planned(heads, limits=larger, state=state)).sum() >= taken(less).sum()
    wider = planned(heads, limits=Limits(larger.total, per_partition), state=state)
    assert (taken(wider) >= taken(less)).all()


@given(st.lists(HEADS, min_size=1, max_size=6), MOST, MOST, st.booleans(), st.integers(1, 40), st.booleans())
def test_from_trigger_to_trigger_every_offset_is_read_once(grown, most, per_partition, controlled, size, by_limit):
    """A limit may fall between the cuts of a spout."""
    aligns = {SPOUT: lambda partition, start, end: end // size * size if end // size * size > start else start + size}
    state, at, heads, read = PlanState(controlled), Offsets(), {}, {}
    for now in range(3000):
        for key, head in (grown[now] if now < len(grown) else {}).items():
            heads[key] = heads.get(key, 0) + head // size * size
        made = planned(heads, at, Limits(most, per_partition), state, float(now), aligns=aligns, by_limit=by_limit)
        for key, start, end in ranges(at, made.offsets):
            assert read.get(key, 0) == start
            assert end % size == 0
            read[key] = end
        state, at = made.state.begun(str(now)), made.offsets
        if now >= len(grown) and not made.is_new:
            break
    assert read == {key: head for key, head in heads.items() if head}


# --- what holds a whole micro-batch back


def held(waiting, state=OFF, now=0.0, minimum=5):
    """The state after ``waiting`` offsets were held back, None if they were read."""
    made = planned({A: waiting}, limits=Limits(minimum=minimum), state=state, now=now)
    assert made.is_new == (taken(made).sum() > 0)
    return None if made.is_new else made.state


@given(st.integers(1, 99), st.integers(1, 99))
def test_too_little_waits_until_there_is_enough(waiting, minimum):
    assert (held(waiting, minimum=minimum) is None) == (waiting >= minimum)


def test_too_little_is_read_when_it_was_first_seen_so_long_ago():
    nothing = planned({A: 0}, limits=Limits(minimum=5)).state
    waits = held(1, nothing, now=1000.0)
    waits = held(2, waits, now=1059.0)
    read = planned({A: 2}, limits=Limits(minimum=5), state=waits, now=1060.0)
    assert (read.is_new, read.state.waits_since) == (True, None)
    assert held(1, held(1, read.state, now=1061.0), now=1120.0) is not None


def test_a_micro_batch_in_between_begins_the_wait_anew():
    waits = held(1, now=0.0)
    read = planned({A: 9}, limits=Limits(minimum=5), state=waits, now=30.0)
    assert read.is_new
    assert held(1, read.state, now=70.0) is not None


def test_an_open_circuit_breaker_holds_all_back_but_for_a_query_that_would_end():
    assert not planned({A: 9}, paused={"api": 5.0}).is_new
    assert flat(planned({A: 9}, paused={"api": 5.0}, cap={A: 7}).offsets.offsets) == {A: 7}


# --- the controller


ENDLESS = {A: 10**9, B: 10**9}


def test_what_is_read_is_what_the_controller_measures_next():
    made = planned(ENDLESS, state=ON, limits=Limits(30))
    assert made.state.begun("name").measured.batch == "name"
    assert (made.state.measured.ends - made.state.measured.starts).tolist() == [15, 15]
    again = planned(ENDLESS, made.offsets, Limits(minimum=10**10), made.state, now=1.0)
    assert (again.state.measured, again.state.admission.batches) == (None, 1)


def test_a_budget_that_is_not_in_force_is_no_throttling():
    """Spark 4.0 and 4.1: the run may end with its first micro-batch."""
    first = planned(ENDLESS, state=ON, by_limit=False)
    assert taken(first).tolist() == [10**9, 10**9]
    assert (first.throttling.reason.text, first.throttling.budget, first.offsets.admission) == ("none", None, {})
    idle = planned(ENDLESS, first.offsets, state=first.state, by_limit=False, now=9.0)
    assert not idle.is_new
    more = {A: 10**10, B: 10**10}
    assert taken(planned(more, first.offsets, state=idle.state, by_limit=False, now=10.0)).sum() < 10**9
    known = planned(ENDLESS, at_of({A: 0, B: 0}, {SPOUT: {"common": 50}}), state=ON, by_limit=False)
    assert taken(known).sum() <= 100
    assert known.offsets.admission == {}, "the next run must not take this one for endless"
    asked_for = request_of(backpressure__initialrate="100")
    assert taken(planned(ENDLESS, state=ON, request=asked_for, by_limit=False)).sum() <= 200


def test_trigger_once_has_neither_limits_nor_a_controller():
    made = planned(ENDLESS, at_of({A: 0, B: 0}, {SPOUT: {"common": 50}}), Limits(lifted=True), ON)
    assert taken(made).tolist() == [10**9, 10**9]
    assert made.offsets.admission == {SPOUT: {"common": 50}}
    assert made.state.admission is None


def test_a_controller_begins_with_what_the_offset_holds():
    made = planned(ENDLESS, at_of({A: 0, B: 0}, {SPOUT: {"common": 50}}), state=ON)
    assert 0 < made.throttling.budget == taken(made).sum() <= 100
    assert made.offsets.admission[SPOUT]["common"] == 50


def test_what_it_has_learned_is_written_even_if_it_fails():
    known = planned(ENDLESS, at_of({A: 0, B: 0}, {SPOUT: {"common": 50}}), state=ON).state
    failed = planned(ENDLESS, at_of({A: 0, B: 0}), Limits(9), known, now=1.0, reports=[object()])
    assert failed.offsets.admission[SPOUT]["common"] == 50


def test_a_query_that_was_asked_when_its_trigger_fired_has_waited_for_it():
    known = AdmissionState(asked=0.0, trigger=TriggerInterval(10.0, asked=0.0))
    assert planned(ENDLESS, state=PlanState(True, known), now=9.9).waited
    assert not planned(ENDLESS, state=PlanState(True, known), now=7.0).waited


def test_a_controller_that_fails_leaves_the_limits_and_stays_off():
    first = planned(ENDLESS, state=ON)
    made = planned(ENDLESS, first.offsets, Limits(10**6), first.state, now=1.0, reports=[object()])
    assert isinstance(made.failure, AttributeError)
    assert taken(made).sum() == 10**6
    assert (made.state.controlled, made.state.admission, made.state.has_planned) == (False, None, True)
    after = planned(ENDLESS, made.offsets, state=made.state, now=2.0)
    assert (after.failure, after.throttling.budget) == (None, None)
