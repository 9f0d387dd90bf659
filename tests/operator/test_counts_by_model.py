"""The counts of a topology as each door tells them are those of a model."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import Row

from pystorm_source import Input, counts_of
from pystorm_source.counts.batch_counts import BatchCounts, Shape
from pystorm_source.counts.component_progress import TopologyView
from pystorm_source.operator.report_column import REPORTS
from pystorm_source.plan import compile_plan
from pystorm_source.sink.request import SinkRequest
from pystorm_source.sink.sink_records import record_of
from pystorm_source.sink.writer import RowWriter, _Sink
from pystorm_source.spark.ddl import parse_type
from pystorm_source.testing import run_topology
from pystorm_source.worker import OutputPlan, Worker
from tests.operator.counted import FORMS, Counted, Told, made, model, of_progress, without_rows
from tests.operator.tasks import function_of, rows_of
from tests.sizes import sized
from tests.worker.running import Numbers

IDS, _ = parse_type("struct<id: long>", "the DataFrame")


class Ids(Numbers):
    outputs = ["id long"]


def of_kit(form, rows, options):
    result = run_topology(made(form, Input.spec(["id long"])), options, rows=[[n] for n in range(rows)])

    def of(name):
        return Counted(*(getattr(result, count)[name] for count in Counted._fields))

    counts = (result.emitted, result.acked, result.failed, result.retries, result.dead_letters, result.dropped)
    return Told(of("first"), of("last"), *(count["rows"] for count in counts))


def of_operator(form, rows, options, keep=(), **doors_own):
    """``doors_own``: options that the engine has not."""
    topology = made(form, Input.spec(["id long"]))
    function = function_of(topology, "id: long", keep=keep, counted=True, **options, **doors_own)
    ids = pa.RecordBatch.from_pydict({"id": pa.array(range(rows), pa.int64())})
    report = rows_of(function(iter([ids])))[-1][-1]
    return of_progress(counts_of(topology, {REPORTS: [report]}, options={**options, **doors_own}))


def of_sink(form, rows, options, **doors_own):
    """As its record has it."""
    given = {"topology": f"tests.operator.counted:{form.title()}Sink", **options, **doors_own}
    writer = RowWriter(_Sink(SinkRequest.of({key: str(value) for key, value in given.items()}), IDS, False))
    message = writer.write(iter([Row(id=n) for n in range(rows)]))
    writer.commit([message])
    return of_progress(record_of(writer.sink.request, [message], None).topology)


def of_range(form, rows, options):
    """As the driver of a source has it, from the report of a task's range."""
    topology = made(form, Ids.spec())
    plan = compile_plan(topology, options)
    output = OutputPlan.typed(plan)
    worker = Worker(plan, output)
    try:
        for _ in worker.run("rows", "p", 0, rows):
            pass
        columns = worker.last_run().components
    finally:
        worker.stop()
    batch = BatchCounts(Shape.of(plan), ("rows",), "key", 1, 1)
    batch.sums.add(columns)
    return of_progress(TopologyView(plan, output, "run").of(batch, batch.sums, {}, {}))


@settings(max_examples=sized(60), deadline=None)
@given(
    form=st.sampled_from(sorted(FORMS)),
    rows=st.integers(1, 40),
    retries=st.integers(0, 3),
    letters=st.sampled_from(["drop", "stream", "path"]),
    keep=st.sampled_from([(), "*"]),
    scheduler=st.sampled_from(["inline", "threads"]),
)
def test_every_door_tells_the_counts_of_the_model(tmp_path_factory, form, rows, retries, letters, keep, scheduler):
    options = {"topology.max.spout.retries": retries, "topology.scheduler": scheduler}
    wanted = model(range(rows), retries, letters)
    found = {}
    if letters == "path":  # an option of the operator's own
        path = {"topology.dead.letter.path": str(tmp_path_factory.mktemp("letters"))}
        found["operator"] = of_operator(form, rows, options, keep, **path)
        found["sink"] = of_sink(form, rows, options, **path)
    else:
        options["topology.dead.letter"] = letters
        all_streams = {"streams": "all"} if letters == "stream" else {}
        found["operator"] = of_operator(form, rows, options, keep, **all_streams)
        found["kit"] = of_kit(form, rows, options)
        found["range"] = of_range(form, rows, options)
        if letters == "drop":
            found["sink"] = of_sink(form, rows, options)
    if form == "column":  # its rows fail with others of their batch, which are emitted again with them
        wanted = (wanted.first.failed, wanted.dead_letters, wanted.dropped)
        found = {door: (told.first.failed, told.dead_letters, told.dropped) for door, told in found.items()}
    sinks = found.pop("sink", None)
    assert found == dict.fromkeys(found, wanted)
    if sinks is not None and form != "column":
        # The letters of its folder are the rows that leave it, and so its Input's emits.
        wanted = without_rows(model(range(rows), retries, "stream" if letters == "path" else letters))
    assert sinks in (None, wanted)


@pytest.mark.parametrize("scheduler", ["inline", "threads"])
@pytest.mark.parametrize("form", sorted(FORMS))
def test_without_tracking_every_door_tells_the_same(form, scheduler):
    """Two rows, of which none fails: one that did would end the task."""
    options = {"topology.acker.executors": 0, "topology.scheduler": scheduler}
    untracked = model(range(2), 0, "fail")._replace(acked=0)
    for door in (of_kit, of_operator, of_range):
        assert door(form, 2, options) == untracked, door
    assert of_sink(form, 2, options) == without_rows(untracked)
