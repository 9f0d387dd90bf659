"""The controller keeps its promises for any rates, backlogs and reports."""

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulate import Scenario, constant, figures, losing, run, stepping
from pystorm_source.source.pace import GROWTH, Pace, PaceSettings, Reason, step
from pystorm_source.source.pace_budget import Budget, budget
from pystorm_source.source.pace_costs import Costs, Target
from pystorm_source.source.pace_section import pace_of, section_of
from tests.source.pacing import SPOUT, Told, names, played, seen

ONE = PaceSettings(Target(1.0), {SPOUT: 10_000.0})
ENDLESS = 2**62
RATES = st.lists(st.floats(0.5, 1e7), min_size=1, max_size=20)


def known(rates, slots=2, fixed=0.0, each=1e-5):
    """A controller that has measured these rates, and ``fixed`` seconds that a micro-batch costs besides."""
    rate = np.array(rates, np.float64)
    count = len(rates)
    return Pace(
        names=names(count),
        rate=rate,
        smooth=rate,
        sample=rate,
        samples=np.full(count, 9),
        ways=np.ones(count, np.int64),
        caution=np.ones(count),
        why=np.full(count, Reason.RATE),
        common={SPOUT: float(np.median(rate))},
        slots=slots,
        each=each,
        costs=Costs(fixed),
        turn=9,
    )


def given_to(pace, waiting, settings=ONE):
    waiting = np.broadcast_to(np.asarray(waiting, np.int64), (len(pace.rate),))
    return budget(pace, pace.names, waiting, settings)


def columns(pace):
    return {
        field.name: value.tolist() if isinstance(value := getattr(pace, field.name), np.ndarray) else value
        for field in fields(pace)
        if field.name != "sample"
    }


@given(RATES, st.integers(1, 8), st.integers(1, 10**12), st.floats(0.01, 100))
def test_everyone_gets_something_and_nobody_more_than_waits(rates, slots, waiting, target):
    made = given_to(known(rates, slots), waiting, PaceSettings(Target(target), {SPOUT: 1.0}))
    assert (made.offsets >= 1).all()
    assert (made.offsets <= waiting).all()
    assert np.isfinite(made.pressure)


@given(RATES, st.integers(1, 8), st.integers(1, 10**9))
def test_without_pressure_all_that_waits_is_read(rates, slots, waiting):
    made = given_to(known(rates, slots), waiting)
    if (waiting / np.array(rates) + 1e-5).sum() <= 1:  # one slot alone could do it
        assert (made.offsets == waiting).all()
        assert made.reason is Reason.NONE


@given(RATES, st.integers(1, 8), st.floats(0.1, 10), st.floats(1, 10))
def test_a_longer_target_reads_no_less(rates, slots, target, factor):
    shorter = given_to(known(rates, slots), ENDLESS, PaceSettings(Target(target), {}))
    longer = given_to(known(rates, slots), ENDLESS, PaceSettings(Target(target * factor), {}))
    assert longer.offsets.sum() >= shorter.offsets.sum() * 0.999 - len(rates)


@given(RATES, st.integers(1, 8), st.integers(0, 19), st.floats(1e-3, 1e12))
def test_no_rate_takes_from_the_others(rates, slots, row, rate):
    """Each has its time: what one claims to do in it is its own affair."""
    row %= len(rates)
    honest = given_to(known(rates, slots), ENDLESS)
    other = given_to(known([*rates[:row], rate, *rates[row + 1 :]], slots), ENDLESS)
    rest = np.arange(len(rates)) != row
    assert other.offsets[rest] == pytest.approx(honest.offsets[rest], rel=1e-3, abs=1)


def test_a_slow_partition_gets_the_same_time_not_the_same_offsets():
    assert given_to(known([1000, 1000, 1000, 20]), ENDLESS).offsets.tolist() == pytest.approx(
        [500, 500, 500, 10], abs=1
    )


def test_what_little_backlogs_leave_goes_to_the_others():
    made = given_to(known([1000.0] * 4), [100, 9999, 9999, 9999])
    assert made.offsets[0] == 100
    assert made.offsets.sum() == pytest.approx(2000, abs=8)


def test_the_first_micro_batch_is_bounded_by_the_initial_rate():
    made = budget(Pace(), names(4), np.full(4, ENDLESS), ONE)
    assert 0 < made.offsets.sum() <= 10_000
    assert made.reason is Reason.FIRST_BATCH


def test_a_new_partition_begins_at_the_common_rate():
    pace = step(known([100.0, 100.0]), played([100, 100], [1.0, 1.0]), ONE).of(names(3), ONE)
    assert pace.rate.tolist() == [100.0, 100.0, 100.0]


def test_of_more_partitions_than_their_tasks_leave_time_for_each_has_its_turn():
    pace = known([1000.0] * 100, slots=1, each=0.02)
    read = np.zeros(100)
    for _ in range(10):
        made = given_to(pace, ENDLESS)
        assert (made.offsets > 0).sum() <= 16
        read += made.offsets > 0
        pace = pace.from_row(made.cursor)
    assert (read > 0).all()


def test_a_lone_sample_counts_in_part_and_two_that_agree_count_in_full():
    once = step(known([1000.0]), played([1000], [0.5]), ONE)
    assert 1100 < once.rate[0] < 1900
    assert step(once, played([1000], [0.5]), ONE).rate[0] == pytest.approx(2000, rel=0.05)


def test_a_slower_sample_counts_at_once():
    assert step(known([1000.0]), played([1000], [4.0]), ONE).rate[0] == pytest.approx(250)


def test_small_deviations_change_nothing():
    assert step(known([1000.0]), played([1000], [1.02]), ONE).rate[0] == 1000


def test_a_short_task_does_not_make_a_partition_slow():
    assert step(known([100_000.0]), played([10], [0.005], throttled=False), ONE).rate[0] > 80_000


def test_the_start_of_a_process_does_not_make_a_partition_slow():
    begun = Pace().of(names(1), ONE)
    assert step(begun, played([5], [3.0], throttled=False), ONE).rate[0] > 5_000
    twice = step(step(begun, played([5], [3.0], throttled=False), ONE), played([5], [3.1], throttled=False), ONE)
    assert twice.rate[0] < 2


def test_failures_halve_and_clean_micro_batches_give_back():
    pace = step(known([1000.0], fixed=0.1), played([1000], [1.0], failed=100), ONE)
    assert pace.caution.tolist() == [0.5]
    assert given_to(pace, ENDLESS).reason is Reason.FAILURES
    pace = step(pace, played([500], [0.5]), ONE)
    assert pace.caution.tolist() == pytest.approx([0.6])
    assert given_to(pace, ENDLESS).reason is Reason.PROBING


def test_a_task_that_was_tried_again_is_no_failure():
    """A lost node or a speculative twin says nothing of the tuples."""
    pace = step(known([1000.0], fixed=0.1), played([1000], [1.0], attempt=3), ONE)
    assert pace.caution.tolist() == [1.0]
    assert given_to(pace, ENDLESS).reason is Reason.RATE


def test_failures_that_never_end_leave_a_share():
    pace = known([1000.0])
    for _ in range(20):
        pace = step(pace, played([1000], [1.0], failed=1000), ONE)
    assert given_to(pace, ENDLESS).offsets[0] >= 100


@given(st.floats(1e-9, 1e9), st.integers(1, 4))
def test_a_lie_lifts_a_rate_by_a_bounded_factor(seconds, liars):
    reports = [
        report._replace(seconds=seconds) if row < liars else report
        for row, report in enumerate(played([100] * 4, [0.1] * 4).reports)
    ]
    pace = step(known([1000.0] * 4), seen([100] * 4, reports, asked=0.3), ONE)
    assert (pace.rate <= 1000 * GROWTH * 1.001).all()
    assert pace.rate[liars:] == pytest.approx(1000.0)


def test_an_unexplained_overrun_shrinks_the_next_micro_batch():
    batch = played([450, 450], [0.45, 0.45])
    late = seen([450, 450], batch.reports, asked=3.0)
    pace = step(known([1000.0] * 2), late, ONE)
    assert given_to(pace, ENDLESS).offsets.sum() < 1500
    assert given_to(pace, ENDLESS).reason is Reason.OVERRUN


def test_the_first_micro_batch_of_a_run_starts_processes_and_says_nothing_of_time():
    batch = played([450, 450], [0.45, 0.45])
    pace = step(replace(known([1000.0] * 2), turn=0), seen([450, 450], batch.reports, asked=30.0), ONE)
    assert given_to(pace, ENDLESS).offsets.sum() >= 1900


def test_waiting_for_the_trigger_is_no_work():
    batch = played([450, 450], [0.45, 0.45])
    waited = seen([450, 450], batch.reports, asked=10.0, waited=True)
    assert given_to(step(known([1000.0] * 2, fixed=0.1), waited, ONE), ENDLESS).offsets.sum() >= 1700


def unreported(pace, micro_batches, cost):
    """The same after micro-batches of which nothing is heard but when they were over; their sizes."""
    sizes = []
    for _ in range(micro_batches):
        made = given_to(pace, ENDLESS).offsets.tolist()
        sizes.append(sum(made))
        pace = step(pace, seen(made, asked=cost(sum(made))), ONE)
    assert given_to(pace, ENDLESS).reason is Reason.NO_REPORT
    return sizes


def test_without_reports_the_time_of_the_batch_counts():
    sizes = unreported(known([1000.0] * 2, fixed=0.1), 8, lambda size: 0.1 + size / 500)
    assert sizes[-1] == pytest.approx(450, rel=0.1)


def test_a_cut_that_does_not_shorten_the_batch_is_taken_back():
    sizes = unreported(known([1000.0], slots=1, fixed=0.1), 12, lambda size: 10.0 + size / 1000)
    assert sizes[1] < sizes[0]
    assert sizes[-1] > 10_000


@settings(max_examples=25)
@given(RATES, st.lists(st.floats(0.001, 10), min_size=20, max_size=20))
def test_equal_histories_give_equal_states(rates, seconds):
    batch = played([50] * len(rates), seconds[: len(rates)])
    one, two = (step(step(known(rates), batch, ONE), batch, ONE) for _ in range(2))
    assert columns(one) == columns(two)


@given(
    st.lists(st.floats(10, 1e7), min_size=1, max_size=20),
    st.integers(1, 64),
    st.floats(0.001, 10),
    st.floats(0.0001, 0.1),
)
def test_a_restart_goes_on_from_the_offset_alone(rates, slots, fixed, each):
    before = known(rates, slots, fixed=fixed, each=each)
    section = json.loads(json.dumps(section_of(before)))
    after = pace_of(section).of(before.names, ONE)
    assert section_of(after) == section
    assert after.slots == slots
    assert after.costs.fixed == pytest.approx(fixed, rel=0.06, abs=1e-6)
    assert after.rate == pytest.approx(before.rate, rel=0.35)
    assert given_to(after, ENDLESS).reason is not Reason.FIRST_BATCH


@pytest.mark.parametrize("section", [{}, {"s": 5}, {"s": {"common": 0}}, {"s": {"common": "x", "others": 3}}])
def test_a_section_that_makes_no_sense_begins_anew(section):
    assert budget(pace_of(section), names(1), np.array([ENDLESS]), ONE).reason is Reason.FIRST_BATCH


@settings(max_examples=15)
@given(
    st.lists(st.floats(1000, 1e6), min_size=1, max_size=20),
    st.integers(1, 8),
    st.floats(0, 0.03),
    st.integers(0, 99),
)
def test_any_constant_rates_are_found_within_five_micro_batches(rates, slots, noise, seed):
    rate = constant(np.array(rates))
    scenario = Scenario("any", len(rates), slots, rate, seconds=9, noise=noise, seed=seed, initial=1000)
    told = figures(scenario, run(scenario))
    assert told["settled"][1] <= 5
    assert told["late"] <= 1.25


@pytest.mark.parametrize("lost", [0.0, 0.5, 1.0])
def test_steps_of_capacity_are_followed_within_five_micro_batches(lost):
    rates = stepping(np.full(16, 5000.0), 20, (1, 4, 1))
    tamper = losing(lost)
    told = figures(s := Scenario("step", 16, 2, rates, 60, (0.0, 20.0, 40.0), tamper=tamper), run(s))
    assert told["settled"][1] <= 5
    assert told["overshoot"] < 0.25


def test_a_hundred_thousand_partitions_are_decided_at_once():
    many = names(100_000)
    waiting = np.full(100_000, 10**6)
    made = budget(Pace(), many, waiting, ONE)
    assert isinstance(made, Budget)
    assert 0 < (made.offsets > 0).sum() < 1000
    assert Told("p000").spout == SPOUT
