"""The counts of dead letters are the letters in the folder, at each door that writes them."""

import json
import random

import pyarrow as pa
import pytest
from pyspark.sql import Row

from pystorm_source import Bolt, Hopeless, Input, Topology, counts_of
from pystorm_source.operator.report_column import REPORTS
from pystorm_source.sink.request import SinkRequest
from pystorm_source.sink.sink_records import record_of
from pystorm_source.sink.writer import RowStreamWriter, RowWriter, _Sink
from pystorm_source.spark.ddl import parse_type
from pystorm_source.testing import run_topology
from tests.operator.tasks import function_of, rows_of, schedulers

IDS, _ = parse_type("struct<id: long>", "the DataFrame")
PATH = "topology.dead.letter.path"


class Fails(Bolt):
    """A negative row fails for good, 0 once, all others never."""

    exit_on_exception = False

    def initialize(self, conf, context):
        self.seen = False

    def process(self, tup):
        if tup.values.id < -5:
            raise Hopeless("far too small")
        if tup.values.id < 0 or (tup.values.id == 0 and not self.seen):
            self.seen |= tup.values.id == 0
            raise ValueError("too small")
        self.done(tup)

    def done(self, tup):
        """A sink emits nothing."""


class Passes(Fails):
    outputs = ["id long"]

    def done(self, tup):
        self.emit([tup.values.id])


class Sink(Topology):
    config = {"topology.max.spout.retries": 2}
    rows = Input.spec(["id long"])
    bolt = Fails.spec(inputs=[rows])


class Operator(Topology):
    config = {"topology.max.spout.retries": 2}
    rows = Input.spec(["id long"])
    bolt = Passes.spec(inputs=[rows])


def letters_in(folder):
    lines = [line for path in folder.glob("*.jsonl") for line in path.read_text().splitlines()]
    return sorted(json.loads(json.loads(line)["values"])[0] for line in lines)


def by_operator(rows, folder, scheduler):
    options = {PATH: str(folder), "topology.scheduler": scheduler}
    function = function_of(Operator, "id: long", counted=True, **options)
    *_, last = rows_of(function(iter([pa.RecordBatch.from_pydict({"id": pa.array(rows, pa.int64())})])))
    return counts_of(Operator, {REPORTS: [last[-1]]}, options=options)


def by_sink(rows, folder, scheduler, kind):
    given = {"topology": f"{__name__}:Sink", PATH: str(folder), "topology.scheduler": scheduler}
    sink = _Sink(SinkRequest.of(given), IDS, False)
    writer = kind(sink)
    message = writer.write(iter([Row(id=row) for row in rows]))
    writer.commit(*([message],) if kind is RowWriter else ([message], 4))
    record = record_of(sink.request, [message], None if kind is RowWriter else 4)
    assert record.tasks.dead_letters == sum(row < 0 for row in rows)
    assert record.tasks.rows == 0, "dead letters in files are no rows"
    return record.topology


@schedulers
@pytest.mark.parametrize("door", ["operator", "batch", "stream"])
@pytest.mark.parametrize("seed", range(4))
def test_a_folder_holds_as_many_letters_as_are_counted(tmp_path, scheduler, door, seed):
    chance = random.Random(seed)
    rows = [chance.randrange(-9, 10 * seed + 1) for _ in range(chance.choice([1, 7, 300]))]
    if door == "operator":
        found = by_operator(rows, tmp_path, scheduler)
    else:
        found = by_sink(rows, tmp_path, scheduler, {"batch": RowWriter, "stream": RowStreamWriter}[door])
    failed = sorted(row for row in rows if row < 0)
    assert letters_in(tmp_path) == failed
    assert (found.component("rows").batch.dead_letters, found.component("rows").batch.dropped) == (len(failed), 0)
    kit = run_topology(Operator, rows=[(row,) for row in rows], config={"topology.dead.letter": "stream"})
    assert len(kit.rows("rows", "__dead_letter")) == len(failed)
