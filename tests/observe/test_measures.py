"""What is exported of the records of runs."""

from msgspec.structs import replace

from pystorm_source.observe.measures import Measures
from pystorm_source.observe.metric_definitions import DEFINITIONS
from pystorm_source.observe.run_measures import MOST_USER_METRICS
from pystorm_source.records.record import (
    ComponentProgress,
    Counts,
    Metric,
    OutageProgress,
    StreamCounts,
    TopologyProgress,
)
from tests.records.samples import progress


def taken(*records, runs=10):
    measures = Measures(runs)
    for record in records:
        measures.update(record)
    return measures


def of(measures, name, *labels):
    """Values of one metric with these labels, of all runs."""
    return [
        sample.value
        for samples in measures.samples().values()
        for sample in samples.get(name, ())
        if sample.labels == labels
    ]


def with_component(record, component, batch=0):
    return replace(record, topology=TopologyProgress(name="T", batch=batch, components=(component,)))


def test_every_sample_has_the_labels_of_a_definition():
    (samples,) = taken(progress(batch=0), progress(batch=1)).samples().values()
    assert samples.keys() <= DEFINITIONS.keys()
    for name, found in samples.items():
        assert found, name
        assert {len(sample.labels) for sample in found} == {len(DEFINITIONS[name].labels)}, name


def test_a_record_with_everything_leaves_no_metric_without_a_sample():
    record = progress()
    record = replace(record, tasks=replace(record.tasks, reports_dropped={"too long": 1}))
    (samples,) = taken(record).samples().values()
    assert samples.keys() == DEFINITIONS.keys()


def test_two_sources_of_one_topology_do_not_share_their_counts():
    """As in a union of a topology with itself: the first one has the labels that a single one has."""
    first, second = progress(batch=0), progress(batch=0, seed=8)
    first, second = (
        replace(one, topology=replace(one.topology, run=run)) for one, run in ((first, "a"), (second, "b"))
    )
    both = taken(first, second, first).samples()
    assert {key.use: samples for key, samples in both.items()} == {
        use: next(iter(taken(one).samples().values())) for use, one in (("", first), ("b", second))
    }


def test_counters_are_those_since_the_run_began():
    measures = taken(*[progress(batch=batch) for batch in (0, 1, 2)])
    last = progress(batch=2).topology.component("bolt1")
    assert of(measures, "execute_count", "bolt1") == [last.total.executed]
    assert of(measures, "fail_count", "bolt1") == [9]
    assert of(measures, "batches") == [3]
    assert of(measures, "rows") == [sum(progress(batch=batch).rows for batch in (0, 1, 2))]


def test_a_sink_has_its_counts_and_no_admission_and_leaves_the_source_its_own():
    """Also before a task of the source has reported: its records have no topology then."""
    made = progress()
    sink = replace(made, door="sink", topology=replace(made.topology, name="Sink"))
    measures = taken(replace(made, topology=None), sink)
    assert {key.topology: "backlog_offsets" in found for key, found in measures.samples().items()} == {
        "": True,
        "Sink": False,
    }
    measures.update(made)
    assert {key.topology for key in measures.samples()} == {made.topology.name, "Sink"}
    assert of(measures, "batches") == [1, 1]


def test_a_record_that_comes_twice_counts_once():
    once, twice = taken(progress()), taken(progress(), progress())
    assert once.samples() == twice.samples()


def test_counters_never_fall():
    of_component = ComponentProgress(name="a", total=Counts(executed=9))
    measures = taken(
        with_component(progress(), of_component), with_component(progress(), replace(of_component, total=Counts()))
    )
    assert of(measures, "execute_count", "a") == [9]


def test_tuples_that_no_record_gives_a_stream_stand_without_one():
    """As if the first of ten micro-batches had ended before the listener was added."""
    component = ComponentProgress(
        name="a",
        total=Counts(emitted=100),
        streams={"default": StreamCounts(emitted=6), "late": StreamCounts(emitted=4)},
    )
    measures = taken(with_component(progress(), component, batch=9))
    assert of(measures, "emit_count", "a", "default") == [6]
    assert of(measures, "emit_count", "a", "late") == [4]
    assert of(measures, "emit_count", "a", "") == [90]


def test_each_run_has_counters_of_its_own():
    measures = taken(progress(), replace(progress(), run_id="b"))
    assert len(of(measures, "batches")) == 2


def test_a_run_without_a_topology_yet_is_the_same_run_with_it():
    measures = taken(replace(progress(batch=0), topology=None), progress(batch=1), replace(progress(2), topology=None))
    ((common, samples),) = measures.samples().items()
    assert common.topology == "Sample"
    assert samples["batches"][0].value == 3


def test_two_sources_of_a_query_are_apart():
    other = replace(progress(), topology=replace(progress().topology, name="Other"))
    measures = taken(progress(), other)
    assert {common.topology for common in measures.samples()} == {"Sample", "Other"}


def test_a_run_that_has_ended_keeps_its_counters_alone():
    measures = taken(progress())
    measures.end("a3b4")
    (samples,) = measures.samples().values()
    assert {DEFINITIONS[name].kind for name in samples} == {"counter"}


def test_ended_runs_are_forgotten_first():
    measures = taken(replace(progress(), run_id="a"), replace(progress(), run_id="b"), runs=2)
    measures.end("b")
    measures.update(replace(progress(), run_id="c"))
    assert {common.run for common in measures.samples()} == {"a", "c"}


def test_names_of_metrics_made_of_data_are_bounded():
    metrics = {f"customer {i}": Metric(count=1, sum=1.0, last=1) for i in range(1000)}
    measures = taken(with_component(progress(), ComponentProgress(name="a", metrics=metrics)))
    (samples,) = measures.samples().values()
    assert [len(samples[f"user_metric_{each}"]) for each in ("reports", "amount", "last")] == [MOST_USER_METRICS] * 3


def test_a_metric_that_is_no_number_has_no_last_number():
    metrics = {"state": Metric(count=1, last="open"), "share": Metric(count=1, last=float("nan"))}
    measures = taken(with_component(progress(), ComponentProgress(name="a", metrics=metrics)))
    (samples,) = measures.samples().values()
    assert "user_metric_last" not in samples
    assert len(samples["user_metric_reports"]) == 2


def test_while_a_breaker_is_open_nothing_else_is_the_bottleneck():
    down = OutageProgress(name="prices", rate="50/s", failed=10, calls=12)
    record = progress(batch=0)
    measures = taken(record, replace(record, outages=(down,)))
    (samples,) = measures.samples().values()
    assert [sample.labels[1] for sample in samples["bottleneck_capacity"]] == ["waits for a circuit breaker"]
    measures.update(record)
    (samples,) = measures.samples().values()
    assert [sample.labels for sample in samples["bottleneck_capacity"]] == [("bolt1", "busy")]


def test_a_backlog_that_is_unknown_is_not_exported():
    assert of(taken(replace(progress(batch=0), admitted=False)), "backlog_offsets") == []
