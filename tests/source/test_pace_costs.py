"""What is fixed and what grows with the work are told apart, whatever the first guess was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.source.pace_costs import MOST_STRETCH, Costs


def controlled(fixed, stretch, batches, target=1.0):
    """Micro-batches that cost so much, each with the work that the costs leave for it; their seconds."""
    costs, times = Costs(), []
    for _ in range(batches):
        work = costs.work_within(target)
        times.append(fixed + stretch * work)
        costs = costs.after(times[-1], work, target)
    return times


@given(st.floats(0, 0.5), st.floats(1, 4), st.floats(0.5, 100))
def test_the_target_is_met_after_a_few_micro_batches(fixed, stretch, target):
    times = controlled(fixed * target, stretch, 12, target)
    assert times[8:] == pytest.approx([target] * 4, rel=0.2)


def test_where_less_work_is_no_shorter_it_is_the_fixed_part():
    costs = Costs()
    for work in (0.9, 0.5, 0.3, 0.6, 0.2, 0.8):
        costs = costs.after(0.6 + work, work, 1.0)
    assert costs.fixed == pytest.approx(0.6, abs=0.15)
    assert costs.stretch == pytest.approx(1.0, abs=0.25)


def test_a_lone_outlier_is_forgotten():
    costs = Costs()
    for took in (1.0, 1.0, 1.0, 60.0, 1.0, 1.0, 1.0):
        costs = costs.after(took, 0.9, 1.0)
    assert costs.work_within(1.0) == pytest.approx(0.9, abs=0.1)


@given(st.lists(st.tuples(st.floats(0, 1e9), st.floats(0, 1e9)), max_size=20), st.floats(0.001, 1e4))
def test_nonsense_leaves_some_work(batches, target):
    costs = Costs()
    for took, explained in batches:
        costs = costs.after(took, explained, target)
    assert costs.work_within(target) >= 0.09 * target / MOST_STRETCH
