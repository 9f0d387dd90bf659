"""Counts, sums and maxima are exact; quantiles are close to those of a sorted list."""

import math

import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.primitives.latency_histogram import LatencyHistogram

SHARES = (0.0, 0.001, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0)
HOUR = 3_600_000_000_000

# As many short durations as long ones, runs of equal ones among them.
DURATIONS = st.lists(
    st.integers(0, 44)
    .flatmap(lambda bits: st.integers(0, 2**bits))
    .flatmap(lambda nanos: st.integers(1, 20).map(lambda count: [nanos] * count)),
    min_size=1,
    max_size=60,
).map(lambda runs: [nanos for run in runs for nanos in run])


def histogram_of(durations):
    histogram = LatencyHistogram()
    for nanos in durations:
        histogram.record(nanos)
    return histogram


def state(histogram):
    return histogram.buckets(), histogram.count, histogram.total, histogram.maximum


@given(DURATIONS, st.floats(0, 1))
def test_quantiles_are_within_a_sixteenth_of_the_sorted_list(durations, share):
    ascending = sorted(durations)
    histogram = histogram_of(durations)
    for asked in (share, *SHARES):
        truth = ascending[max(1, math.ceil(asked * len(ascending))) - 1]
        assert abs(histogram.quantile(asked) - truth) <= truth / 16
        if truth < 32:
            assert histogram.quantile(asked) == pytest.approx(truth, abs=0.5)
    assert histogram.quantile(1.0) == ascending[-1]


@given(DURATIONS, st.lists(st.floats(0, 1), min_size=2))
def test_quantiles_ascend_up_to_the_maximum(durations, shares):
    histogram = histogram_of(durations)
    quantiles = [histogram.quantile(share) for share in sorted(shares)]
    assert quantiles == sorted(quantiles)
    assert quantiles[-1] <= histogram.maximum


@given(st.lists(st.integers(0, 2**50)))
def test_count_total_and_maximum_are_exact(durations):
    histogram = histogram_of(durations)
    assert histogram.count == len(durations)
    assert histogram.total == sum(durations)
    assert histogram.maximum == max(durations, default=0)
    assert sum(count for _, count in histogram.buckets()) == len(durations)


@given(DURATIONS, DURATIONS)
def test_merging_is_as_if_all_had_been_recorded_in_one(ones, others):
    merged = histogram_of(ones)
    merged.merge(histogram_of(others))
    assert state(merged) == state(histogram_of(ones + others))


@given(DURATIONS)
def test_buckets_total_and_maximum_say_all(durations):
    histogram = histogram_of(durations)
    again = LatencyHistogram.of(histogram.buckets(), histogram.total, histogram.maximum)
    assert state(again) == state(histogram)
    assert [again.quantile(share) for share in SHARES] == [histogram.quantile(share) for share in SHARES]


@given(st.lists(st.tuples(st.integers(0, HOUR), st.integers(1, 300))))
def test_means_keep_count_and_total(turns):
    histogram = LatencyHistogram()
    for total, calls in turns:
        histogram.record_mean(total, calls)
    assert histogram.count == sum(calls for _, calls in turns)
    assert histogram.total == sum(total for total, _ in turns)
    assert histogram.maximum == max([total // calls for total, calls in turns], default=0)


def test_many_are_recorded_as_one_by_one():
    many = LatencyHistogram()
    many.record(777, 1000)
    assert state(many) == state(histogram_of([777] * 1000))


def test_a_copy_stays_as_it_is():
    histogram = histogram_of([1, 2, 3])
    copy = histogram.copy()
    before = state(copy)
    histogram.record(10**9)
    assert state(copy) == before == state(histogram_of([1, 2, 3]))


def test_an_empty_one_has_quantiles_of_0():
    assert [LatencyHistogram().quantile(share) for share in SHARES] == [0.0] * len(SHARES)
    assert state(LatencyHistogram()) == ([], 0, 0, 0)


def test_days_share_the_last_bucket_and_are_summed_exactly():
    histogram = histogram_of([30 * HOUR, 50 * HOUR])
    assert len(histogram.buckets()) == 1
    assert histogram.total == 80 * HOUR
    assert histogram.quantile(0.5) <= histogram.quantile(1.0) == 50 * HOUR


@pytest.mark.parametrize("share", [-0.1, 1.0001, math.inf, math.nan])
def test_a_share_is_between_0_and_1(share):
    with pytest.raises(ValueError, match="Given: "):
        LatencyHistogram().quantile(share)


@settings(max_examples=30)
@given(DURATIONS)
def test_hdrhistogram_says_the_same(durations):
    peer = HdrHistogram(1, 2**46, 3)  # three digits: a thousandth
    for nanos in durations:
        peer.record_value(nanos)
    histogram = histogram_of(durations)
    for share in SHARES:
        # It rounds ranks to the nearest, we up: where two neighbours in rank differ, either may be meant.
        ascending = sorted(durations)
        rank = share * len(ascending)
        near = {ascending[min(len(ascending), max(1, r)) - 1] for r in (math.floor(rank + 0.5), math.ceil(rank))}
        said = peer.get_value_at_percentile(share * 100)
        assert any(abs(said - truth) <= truth / 500 + 1 for truth in near)
        assert any(abs(histogram.quantile(share) - truth) <= truth / 16 for truth in near)
