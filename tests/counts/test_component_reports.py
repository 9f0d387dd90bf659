"""Counts by component of large topologies: bounded on the wire, in memory and in the progress."""

import json
import tracemalloc

import pytest
from msgspec import to_builtins
from msgspec.structs import replace

from pystorm_source.channel.reports.protocol import MOST_BODY
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.channel.reports.task_report import decode, encode
from pystorm_source.counts.query_counts import QueryCounts
from pystorm_source.plan import compile_plan
from pystorm_source.records.fitting import DETAILED, MOST_BYTES, bytes_in_progress, fitting
from pystorm_source.worker.component_columns import ComponentColumns
from pystorm_source.worker.output import OutputPlan
from tests.channel.reports.made_columns import chain, columns
from tests.channel.reports.made_reports import TOKEN, Caller, report, wait_until

pytestmark = pytest.mark.timeout(60)

COMPONENTS, PARTITIONS = 100, 10_000


def counts_of(components, ranges=PARTITIONS):
    """Counts of a query that has begun the micro-batch ``run-0``."""
    plan = compile_plan(chain(components))
    counts = QueryCounts(plan, OutputPlan.typed(plan), "0123456789abcdef")
    counts.begin("run-0", ranges)
    return counts


def arrived(i, sent):
    return decode(encode(report(spout="s", partition=f"partition-{i:06d}", components=sent)), float(i))


def fill(counts, components, reports, first=0):
    sent = [columns(components, seed) for seed in range(20)]
    for i in range(first, first + reports):
        counts.add(arrived(i, sent[i % len(sent)]))


def test_a_large_topology_fits_into_the_progress_with_its_busiest_components_in_full():
    counts = counts_of(COMPONENTS)
    fill(counts, COMPONENTS, 300)
    # As large as the sums of all partitions are.
    scaled = columns(COMPONENTS)
    large = {name: tuple(value * 10**6 for value in getattr(scaled, name)) for name in ("executed", "acked", "emitted")}
    counts.add(arrived(PARTITIONS, replace(scaled, **large)))
    whole = counts.topology()
    assert len(whole.components) == COMPONENTS
    assert len(whole.slow_partitions) == 10
    shown = fitting(whole)
    assert len(json.dumps(json.dumps(to_builtins(shown)))) <= MOST_BYTES == 64 * 1024
    assert len(shown.components) == len(shown.edges) == COMPONENTS
    assert [each.batch for each in shown.components] == [each.batch for each in whole.components]
    assert [each.capacity for each in shown.components] == [each.capacity for each in whole.components]
    assert sum(each.execute.count > 0 for each in shown.components) >= DETAILED
    assert shown.shortened


@pytest.mark.parametrize("most", [200, 2_000, 20_000, 60_000])
def test_a_record_is_shortened_to_any_size(most):
    counts = counts_of(COMPONENTS)
    fill(counts, COMPONENTS, 20)
    whole = counts.topology()
    shown = fitting(whole, most)
    assert bytes_in_progress(to_builtins(shown)) <= most or not shown.components
    busiest = max(whole.components, key=lambda each: each.capacity).name
    if most >= 2_000:
        assert busiest in {each.name for each in shown.components}


def test_a_small_topology_is_not_shortened():
    counts = counts_of(3)
    fill(counts, 3, 10)
    assert fitting(counts.topology()) == counts.topology()
    assert counts.topology().shortened == ()


def test_memory_does_not_grow_with_the_reports_but_for_their_names():
    counts = counts_of(COMPONENTS)
    tracemalloc.start()
    try:
        fill(counts, COMPONENTS, 200)
        first = tracemalloc.get_traced_memory()[0]
        fill(counts, COMPONENTS, 200, first=200)
        grown = tracemalloc.get_traced_memory()[0] - first
    finally:
        tracemalloc.stop()
    assert first < 2 * 1024 * 1024
    assert grown < 200 * 500  # a hash of 64 bits in a set, whose table is made larger in steps


def test_a_report_that_is_too_long_goes_without_what_matters_least():
    sent = report(components=columns(1_000, buckets=16, metrics=100, errors=900))
    assert len(encode(sent, 10**9)) > 2 * MOST_BODY
    for most in (10**9, 150_000, MOST_BODY, 40_000, 1_000):
        got = decode(encode(sent, most), 1.0)
        assert len(encode(sent, most)) <= most
        if most >= MOST_BODY:
            assert got.components.executed == sent.components.executed
            assert sum(got.components.execute[1::2]) in (0, sum(sent.components.execute[1::2]))
    assert got.components is None
    assert got.offsets == sent.offsets


def test_a_metric_whose_sum_is_too_large_stays_json():
    counts = counts_of(3)
    sent = columns(3, metrics=1)
    large = replace(sent, metrics=tuple(replace(each, sum=1e308) for each in sent.metrics))
    for i in range(3):
        counts.add(arrived(i, large))
    (metric,) = counts.topology().component("s").metrics.values()
    assert metric.sum == 1e308
    assert metric.count == 3 * sent.metrics[0].count


def test_counts_of_another_plan_are_dropped_and_their_range_is_known_all_the_same():
    counts = counts_of(3)
    server = ReportServer("127.0.0.1", 0, TOKEN, on_report=counts.add)
    server.start()
    try:
        caller = Caller(server.address)
        caller.send(encode(report(spout="s", components=columns(200))))
        caller.send(encode(report(spout="s", partition="b", components=columns(3))))
        taken = []
        wait_until(lambda: _took(server, taken, 2))
        caller.close()
    finally:
        server.close()
    of_another, of_this = (columns(size) for size in (200, 3))
    assert [each.components for each in taken] == [
        ComponentColumns(retries=each.retries, queue_high_mark=(max(each.queue_high_mark),))
        for each in (of_another, of_this)
    ]
    assert len(counts.topology().components) == 3


def _took(server, taken, count):
    taken += server.take()
    return len(taken) == count
