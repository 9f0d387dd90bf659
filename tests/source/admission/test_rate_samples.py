"""Reports count for what the runner can hold them against."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pystorm_source.source.admission.rate_samples import rate_samples
from tests.source.micro_batches import TaskSaid, played, seen

RATE = 1000.0


def samples(batch, slots=0, rate=RATE):
    return rate_samples(batch, np.full(len(batch.starts), rate), slots)


def test_a_task_is_as_long_as_it_says():
    found = samples(played([100, 300], [0.2, 0.4]))
    assert found.seconds == pytest.approx([0.2, 0.4])
    assert found.offsets.tolist() == [100, 300]
    assert found.is_whole


@pytest.mark.parametrize(
    "report",
    [
        TaskSaid("p000", batch="another"),
        TaskSaid("stranger"),
        TaskSaid("p000", spout="another"),
        TaskSaid("p000", end=101),
        TaskSaid("p000", start=-1),
        TaskSaid("p000", start=50, end=50),
        TaskSaid("p000", seconds=float("nan")),
        TaskSaid("p000", seconds=float("inf")),
        TaskSaid("p000", arrived=-1.0),
        TaskSaid("p001"),
    ],
)
def test_what_was_not_planned_counts_for_nothing(report):
    found = samples(seen([100, 0], [report]))
    assert not found.reported.any()
    assert not len(found.times)


def test_of_two_reports_over_one_range_the_later_one_counts_and_it_is_no_failure():
    first = TaskSaid("p000", seconds=0.1, arrived=0.3)
    found = samples(seen([100], [first._replace(seconds=0.4, arrived=0.9), first, first]))
    assert found.seconds.tolist() == pytest.approx([0.4])
    assert found.failing.tolist() == [0.0]


def test_ranges_that_overlap_count_for_nothing():
    found = samples(seen([100, 100], [TaskSaid("p000", 0, 60), TaskSaid("p000", 50, 100), TaskSaid("p001")]))
    assert found.reported.tolist() == [0, 1]


def test_the_parts_of_a_split_partition_add_up():
    found = samples(seen([100], [TaskSaid("p000", 0, 60, 0.1), TaskSaid("p000", 60, 100, 0.3)]))
    assert found.offsets.tolist() == [100]
    assert found.seconds.tolist() == pytest.approx([0.4])
    assert found.reported.tolist() == [2]


def test_a_task_has_not_begun_before_its_batch():
    assert samples(seen([100], [TaskSaid("p000", seconds=1e9, arrived=1.0)], planned=0.5)).seconds.tolist() == [0.5]


def test_slots_are_those_that_were_at_work_at_once():
    assert samples(played([100] * 12, [0.1] * 12, slots=3)).slots == 3
    assert samples(played([100] * 2, [0.1] * 2, slots=3)).slots == 2


def test_the_gap_between_tasks_is_seen():
    reports = [TaskSaid(f"p{row:03d}", seconds=0.08, arrived=0.1 * (row + 1)) for row in range(10)]
    assert samples(seen([100] * 10, reports)).gap == pytest.approx(0.02)


def test_what_no_retry_helps_says_nothing_of_the_load():
    said = TaskSaid("p000", end=100, acked=80, failed=20, refused=15)
    found = samples(seen([100], [said]))
    assert found.failing.tolist() == [0.05]
    assert found.trees.tolist() == [100]


def test_who_hides_what_it_took_is_charged():
    batch = played([100, 100, 5000], [0.1, 0.1, 5.0], slots=1)
    liar = batch.reports[-1]._replace(seconds=1e-6)
    found = samples(seen([100, 100, 5000], [*batch.reports[:2], liar], asked=5.3), slots=1)
    assert found.seconds[:2] == pytest.approx([0.1, 0.1])
    assert found.seconds[2] > 4


def test_reports_that_were_lost_charge_nobody():
    batch = played([100] * 4, [0.001, 1.0, 1.0, 1.0], slots=1)
    found = samples(seen([100] * 4, [batch.reports[0], batch.reports[3]], asked=4.0), slots=1)
    assert found.seconds == pytest.approx([0.001, 0, 0, 1.0])
    assert not found.is_whole


@given(
    st.lists(
        st.builds(
            TaskSaid,
            partition=st.sampled_from(["p000", "p001", "p002", "x"]),
            start=st.integers(-5, 2**63),
            end=st.integers(-5, 2**63) | st.just(100),
            seconds=st.floats(allow_nan=True),
            arrived=st.floats(-10, 10),
            acked=st.integers(0, 2**63 - 1),
            failed=st.integers(0, 2**63 - 1),
            batch=st.sampled_from(["b", "c"]),
        ),
        max_size=6,
    )
)
def test_nonsense_does_no_harm(reports):
    found = samples(seen([100, 200, 0], reports))
    assert np.isfinite(found.seconds).all()
    assert (found.seconds <= 3 * 1.2).all()
    assert ((found.failing >= 0) & (found.failing <= 1)).all()
    assert (found.offsets <= [100, 200, 0]).all()


def test_the_time_with_an_open_breaker_is_no_work():
    said = TaskSaid("p000", end=440, seconds=69.0, arrived=69.0, acked=440, paused=60.0)
    found = samples(seen([440], [said], asked=69.1), rate=50.0)
    assert found.seconds.tolist() == pytest.approx([9.0])
    assert found.times.tolist() == pytest.approx([69.0]), "the micro-batch has taken that long all the same"


def test_an_outage_makes_no_one_faster_than_before():
    """Bolts that need no permits have worked meanwhile."""
    said = TaskSaid("p000", end=100, seconds=60.0, arrived=60.0, paused=59.9)
    assert samples(seen([100], [said], asked=60.1), rate=5.0).seconds.tolist() == pytest.approx([20.0])


def test_failures_that_have_opened_a_breaker_say_nothing_of_the_load():
    said = TaskSaid("p000", end=100, acked=60, failed=40)
    assert samples(seen([100], [said])).failing.tolist() == [0.4]
    assert samples(seen([100], [said._replace(paused=0.05)])).failing.tolist() == [0.0]
