"""Latencies of tasks in one, against the histogram of the core."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.primitives.latency_histogram import LatencyHistogram
from pystorm_source.counts.latencies import NANOS, Latencies
from pystorm_source.records.record import Latency
from pystorm_source.worker.component_columns import SLOTS
from tests.sizes import sized

durations = st.lists(st.integers(0, 1 << 44), max_size=60)


def recorded(*nanos):
    histogram = LatencyHistogram()
    for each in nanos:
        histogram.record(each)
    return histogram


def added(latencies, component, before, after, most):
    total, longest, slots = after.since(before, most)
    slots[::2] = [component * SLOTS + slot for slot in slots[::2]]
    zeros = (0,) * component
    latencies.add(tuple(slots), (*zeros, total), (*zeros, longest))


@settings(max_examples=sized(200))
@given(st.lists(st.tuples(st.integers(0, 2), durations, durations), max_size=6))
def test_all_that_was_recorded_meanwhile_is_in_one(ranges):
    latencies = Latencies(3)
    wanted = [[], [], []]
    for component, before, meanwhile in ranges:
        added(latencies, component, recorded(*before), recorded(*before, *meanwhile), 1000)
        wanted[component] += meanwhile
    for found, of in zip(latencies.all(), wanted, strict=True):
        whole = recorded(*of)
        assert found.count == len(of)
        if of:
            assert found.mean == pytest.approx(sum(of) / len(of) / NANOS, rel=0.01)
            assert max(of) * 0.99 <= found.max * NANOS <= max(of) * 18 / 16 + 1
            assert found.p50 * NANOS == pytest.approx(whole.quantile(0.5), rel=0.14, abs=1)
            assert found.p50 <= found.p99 * 1.01 <= found.max * 1.03


@settings(max_examples=sized(200))
@given(durations, durations, st.integers(1, 12))
def test_a_coarser_spread_counts_every_duration(before, meanwhile, most):
    total, longest, slots = recorded(*before, *meanwhile).since(recorded(*before), most)
    assert total == sum(meanwhile)
    assert sum(slots[1::2]) == len(meanwhile)
    assert len(slots) <= 2 * most
    assert slots[::2] == sorted(set(slots[::2]))
    assert max(meanwhile, default=0) <= longest <= max(meanwhile, default=0) * 17 / 16


def test_nothing_recorded_is_no_latency():
    assert Latencies(2).all() == [Latency(), Latency()]


@pytest.mark.parametrize("place", [2 * SLOTS, SLOTS + 672])
def test_slots_of_another_plan_are_refused(place):
    with pytest.raises(ValueError, match="another plan"):
        Latencies(2).add((place, 1), (), ())
