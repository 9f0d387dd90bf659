"""The controller keeps its promises for any rates, backlogs and reports."""

import json
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.source.admission.batch_budget import BatchBudget
from pystorm_source.source.admission.controller import (
    AdmissionState,
    BatchRead,
    Observation,
    Settings,
    decide,
)
from pystorm_source.source.admission.overhead import Overhead
from pystorm_source.source.admission.rate_estimator import DRIFTED_FOR, GROWTH, TEST_CUT, Drift, RateEstimator, Reason
from pystorm_source.source.admission.saved_state import section_of, state_of
from pystorm_source.source.admission.trigger_interval import TriggerInterval
from testbed.rules import without
from testbed.scenarios import Scenario, constant, losing, scenarios, stepping
from testbed.simulate import figures, run
from tests.sizes import sized
from tests.source.micro_batches import SPOUT, TaskSaid, names, played, seen

ONE = Settings(1.0, {SPOUT: 10_000.0})
ENDLESS = 2**62
RATES = st.lists(st.floats(0.5, 1e7), min_size=1, max_size=20)


def known(rates, slots=2, fixed=0.0, task_overhead=1e-5):
    """A controller that has measured these rates, and ``fixed`` seconds that a micro-batch costs besides."""
    rate = np.array(rates, np.float64)
    count = len(rates)
    estimator = RateEstimator(
        names=names(count),
        rate=rate,
        measured=np.ones(count, bool),
        splits=np.ones(count, np.int64),
        share=np.ones(count),
        reason=np.full(count, Reason.RATE),
        offsets=np.zeros(count),
        seconds=np.zeros(count),
        failing=np.zeros(count),
        usual=np.zeros(count),
        common={SPOUT: float(np.median(rate))},
    )
    return AdmissionState(estimator, slots, task_overhead, Overhead(fixed), batches=9, asked=0.0)


def after(state, batch, settings=ONE):
    """What is known after a micro-batch."""
    planned = BatchRead(batch.starts, batch.ends, batch.batch)
    waiting = np.zeros(len(batch.starts), np.int64)
    observed = Observation(batch.asked, 0.123, batch.names, waiting, planned, batch.reports)
    return replace(decide(replace(state, asked=batch.planned), observed, settings)[0], asked=0.0)


def given_to(state, waiting, settings=ONE):
    partitions = state.rates.names
    waiting = np.broadcast_to(np.asarray(waiting, np.int64), (len(state.rates.rate),))
    return decide(state, Observation(0.0, 0.123, partitions, waiting), settings)[1]


def begun(count):
    """A controller that knows nothing but the partitions."""
    return decide(AdmissionState(), Observation(0.0, 0.123, names(count), np.zeros(count, np.int64)), ONE)[0]


def columns(state):
    return {
        field.name: value.tolist() if isinstance(value := getattr(state.rates, field.name), np.ndarray) else value
        for field in fields(state.rates)
    } | {"overhead": state.overhead, "slots": state.slots, "task_overhead": state.task_overhead}


@given(RATES, st.integers(1, 8), st.integers(1, 10**12), st.floats(0.01, 100))
def test_everyone_gets_something_and_nobody_more_than_waits(rates, slots, waiting, target):
    made = given_to(known(rates, slots), waiting, Settings(target, {SPOUT: 1.0}))
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
    shorter = given_to(known(rates, slots), ENDLESS, Settings(target, ONE.initial))
    longer = given_to(known(rates, slots), ENDLESS, Settings(target * factor, ONE.initial))
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
    made = given_to(begun(4), ENDLESS)
    assert 0 < made.offsets.sum() <= 10_000
    assert made.reason is Reason.FIRST_BATCH


def test_a_new_partition_begins_at_the_common_rate():
    rates = after(known([100.0, 100.0]), played([100, 100], [1.0, 1.0])).rates.of(names(3), ONE.initial)
    assert rates.rate.tolist() == [100.0, 100.0, 100.0]


def test_of_more_partitions_than_their_tasks_leave_time_for_each_has_its_turn():
    state = known([1000.0] * 100, slots=1, task_overhead=0.02)
    waiting, zero = np.full(100, ENDLESS), np.zeros(100, np.int64)
    read, planned = np.zeros(100), None
    for turn in range(10):
        state, made = decide(state, Observation(float(turn), 0.1, names(100), waiting, planned), ONE)
        assert (made.offsets > 0).sum() <= 16
        read += made.offsets > 0
        planned = BatchRead(zero, made.offsets, "b")
    assert (read > 0).all()


def test_a_quicker_sample_counts_in_part_and_a_second_one_again():
    once = after(known([1000.0]), played([1000], [0.5]))
    assert 1100 < once.rates.rate[0] < 1900
    assert once.rates.rate[0] < after(once, played([1000], [0.5])).rates.rate[0] < 2000


def test_a_slower_sample_counts_at_once():
    assert after(known([1000.0]), played([1000], [4.0])).rates.rate[0] == pytest.approx(250)


def test_small_deviations_count_in_part():
    assert 900 < after(known([1000.0]), played([1000], [1.15])).rates.rate[0] < 1000


def test_failures_halve_and_clean_micro_batches_give_back():
    state = after(known([1000.0], fixed=0.1), played([1000], [1.0], failed=100))
    assert state.rates.share.tolist() == [0.5]
    assert given_to(state, ENDLESS).reason is Reason.FAILURES
    state = after(state, played([500], [0.5]))
    assert state.rates.share.tolist() == pytest.approx([0.6])
    assert given_to(state, ENDLESS).reason is Reason.PROBING


def test_failures_that_reading_less_does_not_lower_hold_nothing_back():
    """A service that fails one call in twenty, whatever the load: it is read whole, until more fail than usual."""
    state = known([1000.0], fixed=0.1)
    state = after(state, played([1000], [1.0], failed=50))
    assert state.rates.share.tolist() == [0.5]
    state = after(state, played([500], [0.5], failed=25))
    assert state.rates.share.tolist() == [1.0]
    for failed in (60, 40, 55, 65):
        state = after(state, played([1000], [1.0], failed=failed))
        assert state.rates.share.tolist() == [1.0]
        assert given_to(state, ENDLESS).reason is Reason.RATE
    state = after(state, played([1000], [1.0], failed=200))
    assert state.rates.share.tolist() == [0.5]
    state = after(state, played([500], [0.5], failed=20))
    assert state.rates.share.tolist() == [0.6]
    assert given_to(state, ENDLESS).reason is Reason.PROBING


def test_a_few_failures_of_few_tuples_hold_nothing_back():
    """One tuple of a hundred fails in the long run: of 40 that is none, one, two or three."""
    state = known([50.0])
    for failed in (0, 1, 2, 3, 1, 0):
        state = after(state, played([40], [0.8], failed=failed))
        assert state.rates.share.tolist() == [1.0]
    assert after(state, played([40], [0.8], failed=10)).rates.share.tolist() == [0.5]


def test_a_service_that_fails_now_and_then_starves_no_query():
    assert figures(KNOWN["flaky-limited"], run(KNOWN["flaky-limited"]))["filled"] >= 0.95
    assert figures(KNOWN["flaky-slow"], run(KNOWN["flaky-slow"]))["filled"] >= 0.85
    assert figures(KNOWN["flaky"], run(KNOWN["flaky"]))["goodput"] >= 0.75


@pytest.mark.parametrize("name", ["outage-1.5", "outage-60"])
def test_the_micro_batch_after_an_outage_is_as_large_as_the_one_before(name):
    seen = run(KNOWN[name])
    held = next(number for number, planned in enumerate(seen.planned) if planned >= KNOWN[name].outage[0])
    before, following = seen.read[held].sum(), [read.sum() for read in seen.read[held + 1 : held + 4]]
    assert min(following) >= 0.9 * before
    assert figures(KNOWN["fragile"], run(KNOWN["fragile"]))["goodput"] >= 0.78


def test_what_was_usual_is_forgotten_in_clean_micro_batches():
    state = known([1000.0], fixed=0.1)
    for size in (1000, 500):
        state = after(state, played([size], [size / 1000], failed=size // 5))
    for _ in range(4):
        state = after(state, played([1000], [1.0]))
    assert after(state, played([1000], [1.0], failed=50)).rates.share.tolist() == [0.5]


def test_most_failing_is_never_usual():
    state = known([1000.0], fixed=0.1)
    for _ in range(5):
        state = after(state, played([1000], [1.0], failed=900))
    assert state.rates.share.tolist() == [1 / 8]
    assert state.rates.usual.tolist() == [0.0]


def overloaded(batches, flaky, capacity):
    """Share of failed tuples of a service that fails ``flaky`` of them, and what is beyond its capacity, by the number
    of the micro-batch."""
    state, failed, sizes = known([1000.0]), 0, 0
    for number in range(batches):
        size = int(given_to(state, ENDLESS).offsets[0])
        lost = int(flaky(number) * size) + max(0, size - capacity(number))
        failed, sizes = failed + min(lost, size), sizes + size
        state = after(state, played([size], [size / 1000], failed=min(lost, size)))
    return failed / sizes


@pytest.mark.parametrize("usual", [0.3, 0.9])
def test_after_an_outage_an_overload_is_noticed(usual):
    """What failed for a while is not usual for good."""

    def flaky(number):
        return usual if number < 5 else 0.05

    assert overloaded(100, flaky, lambda number: 10**9 if number < 15 else 600) < 0.15


def test_an_overload_of_many_times_the_capacity_is_no_usual_failure():
    assert overloaded(100, lambda number: 0.0, lambda number: 150) < 0.3


@dataclass(frozen=True)
class TriedAgain:
    """A report of a task that Spark started a third time, or beside a slow twin."""

    said: TaskSaid
    attempt: int = 2

    def __getattr__(self, name):
        return getattr(self.said, name)


def test_a_task_that_was_tried_again_is_no_failure():
    """A lost node or a speculative twin says nothing of the tuples."""
    batch = played([1000], [1.0])
    batch = replace(batch, reports=[TriedAgain(said) for said in batch.reports])
    state = after(known([1000.0], fixed=0.1), batch)
    assert state.rates.share.tolist() == [1.0]
    assert given_to(state, ENDLESS).reason is Reason.RATE


def test_failures_that_never_end_leave_a_share():
    state = known([1000.0])
    for _ in range(20):
        state = after(state, played([1000], [1.0], failed=1000))
    assert given_to(state, ENDLESS).offsets[0] >= 100


@given(st.floats(1e-9, 1e9), st.integers(1, 4))
def test_a_lie_lifts_a_rate_by_a_bounded_factor(seconds, liars):
    reports = [
        report._replace(seconds=seconds) if row < liars else report
        for row, report in enumerate(played([100] * 4, [0.1] * 4).reports)
    ]
    state = after(known([1000.0] * 4), seen([100] * 4, reports, asked=0.3))
    assert (state.rates.rate <= 1000 * GROWTH * 1.001).all()
    assert state.rates.rate[liars:] == pytest.approx(1000.0)


def test_an_unexplained_overrun_shrinks_the_next_micro_batch():
    batch = played([450, 450], [0.45, 0.45])
    late = seen([450, 450], batch.reports, asked=3.0)
    state = after(known([1000.0] * 2), late)
    assert given_to(state, ENDLESS).offsets.sum() < 1500
    assert given_to(state, ENDLESS).reason is Reason.OVERRUN


def test_the_first_micro_batch_of_a_run_starts_processes_and_says_nothing_of_time():
    batch = played([450, 450], [0.45, 0.45])
    state = after(replace(known([1000.0] * 2), batches=0), seen([450, 450], batch.reports, asked=30.0))
    assert given_to(state, ENDLESS).offsets.sum() >= 1900


def test_waiting_for_the_trigger_is_no_work():
    batch = played([450, 450], [0.45, 0.45])
    waited = seen([450, 450], batch.reports, asked=10.0)
    state = replace(known([1000.0] * 2, fixed=0.1), trigger=TriggerInterval(10.0, asked=0.0))
    planned = BatchRead(waited.starts, waited.ends, waited.batch)
    observed = Observation(10.0, 10.003, names(2), np.full(2, ENDLESS), planned, waited.reports)
    assert 1700 <= decide(state, observed, ONE)[1].offsets.sum() < 1900


def unreported(state, micro_batches, cost):
    """The same after micro-batches of which nothing is heard but when they were over; their sizes."""
    sizes = []
    for _ in range(micro_batches):
        made = given_to(state, ENDLESS).offsets.tolist()
        sizes.append(sum(made))
        state = after(state, seen(made, asked=cost(sum(made))))
    assert given_to(state, ENDLESS).reason is Reason.NO_REPORT
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
    one, two = (after(after(known(rates), batch), batch) for _ in range(2))
    assert columns(one) == columns(two)


@given(
    st.lists(st.floats(10, 1e7), min_size=1, max_size=20),
    st.integers(1, 64),
    st.floats(0.001, 10),
    st.floats(0.0001, 0.05),
    st.sampled_from([0.0, 0.1, 30.0]),
)
def test_a_restart_goes_on_from_the_offset_alone(rates, slots, fixed, task_overhead, task_fixed):
    before = known(rates, slots, fixed=fixed, task_overhead=task_overhead)
    before = replace(before, rates=replace(before.rates, task_fixed=task_fixed))
    section = json.loads(json.dumps(section_of(before)))
    after = state_of(section)
    after = replace(after, rates=after.rates.of(before.rates.names, ONE.initial))
    assert section_of(after) == section
    assert after.slots == slots
    assert after.overhead.fixed == pytest.approx(fixed, rel=0.06, abs=1e-6)
    assert after.rates.task_fixed == pytest.approx(task_fixed, rel=0.06, abs=1e-6)
    assert after.rates.rate == pytest.approx(before.rates.rate, rel=0.35)
    assert given_to(after, ENDLESS).reason is not Reason.FIRST_BATCH


def test_a_new_query_whose_rate_stays_makes_no_test():
    state = decide(state_of({}), Observation(0.0, 0.123, names(2), np.zeros(2, np.int64)), ONE)[0]
    for _ in range(10):
        assert not state.rates.drift.is_test_due
        state = after(state, played([450] * 2, [0.45] * 2))


@pytest.mark.parametrize("section", [{}, {"s": 5}, {"s": {"common": 0}}, {"s": {"common": "x", "others": 3}}])
def test_a_section_that_makes_no_sense_begins_anew(section):
    observed = Observation(0.0, 0.123, names(1), np.array([ENDLESS]))
    assert decide(state_of(section), observed, ONE)[1].reason is Reason.FIRST_BATCH


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


@pytest.mark.parametrize("slow_from", range(19_000, 25_000, 6_000 // sized(12)))
@pytest.mark.parametrize("partitions", [1, 2, 16])
def test_rates_that_fall_in_the_middle_of_a_micro_batch_are_no_fixed_cost(partitions, slow_from):
    rates = constant(np.full(partitions, 5_000.0))
    slots = min(partitions, 2)
    slow = Scenario(
        "slow", partitions, slots, rates, initial=5_000.0, slow_from=slow_from * slots // partitions, slow_by=8.0
    )
    seen = run(slow)
    missed = [at for at, took in enumerate(seen.took) if took > 1.25]
    assert 1 <= len(missed) <= 2  # the one in which they fall, and the one behind it, if that is mostly quick
    assert max(seen.took) < 9
    assert figures(slow, seen)["late"] < 1.25


KNOWN = {scenario.name: scenario for scenario in scenarios()}


@pytest.mark.parametrize("name", [name for name in KNOWN if name.startswith("fixed-") and name[6:].isdecimal()])
def test_a_fixed_cost_beyond_the_target_leaves_nearly_half_of_the_capacity(name):
    seen = run(KNOWN[name])
    assert figures(KNOWN[name], seen)["goodput"] >= 0.45
    assert "overhead" in seen.reasons


@pytest.mark.parametrize("name", ["task-fixed-0.1", "task-fixed-0.3", "task-fixed-1", "task-fixed-few"])
@pytest.mark.parametrize("seed", range(1, 1 + sized(2)))
def test_a_fixed_cost_of_each_task_leaves_nearly_half_of_the_capacity(name, seed):
    seen = run(replace(KNOWN[name], seed=seed))
    assert figures(KNOWN[name], seen)["goodput"] >= 0.45
    assert seen.targets[-1] > 1.5
    assert seen.reasons[-1] == "overhead"


@pytest.mark.parametrize("seed", range(1, 1 + sized(4)))
def test_a_fixed_cost_of_each_task_starves_no_noisy_query(seed):
    scenario = replace(KNOWN["task-fixed-noisy"], seed=seed)
    assert figures(scenario, run(scenario))["goodput"] >= 0.3


@pytest.mark.parametrize("name", ["task-creeping-0.1", "task-creeping-0.3", "task-creeping-1", "task-creeping-one"])
@pytest.mark.parametrize("seed", range(1, 1 + sized(2)))
def test_a_fixed_cost_of_each_task_that_grows_slowly_starves_no_query(name, seed):
    seen = run(replace(KNOWN[name], seed=seed))
    assert figures(KNOWN[name], seen)["goodput"] >= 0.44
    assert seen.reasons[-1] in ("overhead", "probing")


@pytest.mark.parametrize("seed", range(1, 1 + sized(4)))
def test_a_fixed_cost_of_each_task_that_grows_slowly_starves_no_noisy_query(seed):
    scenario = replace(KNOWN["task-creeping-noisy"], seed=seed)
    assert figures(scenario, run(scenario))["goodput"] >= 0.4


def test_a_fixed_cost_of_each_task_that_shrinks_slowly_gives_the_target_back():
    assert run(KNOWN["task-creeping-away"]).targets[-1] == 1.0


def test_a_rate_that_falls_slowly_is_no_fixed_cost():
    seen = run(KNOWN["rates-creeping"])
    assert max(seen.targets) == 1.0
    assert figures(KNOWN["rates-creeping"], seen)["goodput"] >= 0.85


def test_what_little_waits_is_read_in_a_test_as_well():
    state = known([1000.0] * 2)
    due = replace(state, rates=replace(state.rates, drift=Drift(1000.0, DRIFTED_FOR)))
    assert given_to(due, [5, ENDLESS]).offsets.tolist() == [5, int(given_to(state, [5, ENDLESS]).offsets[1] / TEST_CUT)]
    assert given_to(due, [5, ENDLESS]).reason is Reason.PROBING


def test_a_query_that_starved_before_a_restart_recovers():
    """By its offset a partition does 5,556 offsets a second: each task did 5,000 of them, and took 0.85 s besides."""
    section = {"common": 5556, "fixedMicros": 100_000, "slopePercent": 100, "slots": 2, "taskMicros": 100}
    state = decide(state_of({SPOUT: section}), Observation(0.0, 0.123, names(2), np.zeros(2, np.int64)), ONE)[0]
    for _ in range(30):
        sizes = given_to(state, ENDLESS).offsets
        state = after(state, played(sizes, 0.85 + sizes / 100_000))
    assert state.rates.task_fixed == pytest.approx(0.85, rel=0.1)
    assert sizes.sum() / 100_000 / 2 >= 0.4 * given_to(state, ENDLESS).target


@pytest.mark.parametrize("name", ["compaction-2", "compaction-3", "compaction-4", "compaction-short"])
def test_a_sink_that_stalls_every_few_micro_batches_starves_no_query(name):
    assert figures(KNOWN[name], run(KNOWN[name]))["goodput"] >= 0.4


@pytest.mark.parametrize("name", ["sources-2", "sources-3", "sources-unlike", "sources-step"])
def test_several_sources_of_one_query_share_its_target(name):
    assert np.mean(run(KNOWN[name]).took) <= 1.25


@pytest.mark.parametrize("name", ["sources-noisy", "sources-fixed"])
@pytest.mark.parametrize("seed", range(1, 1 + sized(2)))
def test_several_sources_of_one_query_do_not_drive_each_other_up(name, seed):
    took = run(replace(KNOWN[name], seed=seed, seconds=600)).took
    assert np.mean(took) <= 6
    assert np.mean(took[-10:]) <= 10


def test_what_reading_less_does_not_make_shorter_is_no_rate():
    state = after(known([1000.0] * 4), played([400] * 4, [0.6] * 4))
    state = after(state, played([200] * 4, [0.4] * 4))
    assert state.rates.task_fixed == pytest.approx(0.2)
    assert state.rates.rate == pytest.approx(1000, rel=0.2)


def test_what_reading_less_makes_shorter_is_a_rate():
    state = after(known([1000.0] * 4), played([400] * 4, [1.6] * 4))
    state = after(state, played([100] * 4, [0.4] * 4))
    assert state.rates.task_fixed == 0.0
    assert state.rates.rate == pytest.approx(250)


def test_one_partition_that_becomes_slow_is_no_fixed_cost():
    state = after(known([1000.0] * 4), played([400] * 4, [0.4, 0.4, 0.4, 4.0]))
    state = after(state, played([400, 400, 400, 40], [0.4] * 4))
    assert state.rates.task_fixed == 0.0


def test_a_bolt_of_five_milliseconds_is_begun_with_little():
    scenario = KNOWN["bolt-5ms"]
    assert run(scenario).took[0] - scenario.cold <= 2 * scenario.target


@pytest.mark.parametrize("name", ["quick", "quick-endless"])
def test_a_quick_query_reads_in_its_first_thirty_seconds_what_one_without_limits_does(name):
    with_control, without = (run(KNOWN[name], limited=limited).rows_within(30.0) for limited in (True, False))
    assert with_control >= 0.9 * without


@pytest.mark.parametrize("name", ["lost-all-begun", "lost-all-quick"])
def test_without_reports_a_query_finds_its_rate_as_well(name):
    with_control, without_limits = (run(KNOWN[name], limited=limited).rows_within(30.0) for limited in (True, False))
    assert with_control >= 0.75 * without_limits


def test_tasks_that_are_dear_to_start_are_not_taken_for_slow_ones():
    """64 short tasks of 30 ms each besides their work leave less than half of the slots' time."""
    assert figures(KNOWN["short-tasks"], run(KNOWN["short-tasks"]))["goodput"] > 0.4


def test_a_rule_that_is_switched_off_is_on_again_afterwards():
    fixed = KNOWN["fixed-2"]
    before = figures(fixed, run(fixed))["goodput"]
    with without(["target-gives-way"]):
        assert figures(fixed, run(fixed))["goodput"] < before / 2
    assert figures(fixed, run(fixed))["goodput"] == before


def test_slots_that_are_lost_are_noticed():
    assert figures(KNOWN["slots-lost"], run(KNOWN["slots-lost"]))["settled"][1] <= 5


def test_a_hundred_thousand_partitions_are_decided_at_once():
    many = Observation(0.0, 0.123, names(100_000), np.full(100_000, 10**6))
    made = decide(AdmissionState(), many, ONE)[1]
    assert isinstance(made, BatchBudget)
    assert 0 < (made.offsets > 0).sum() < 1000
