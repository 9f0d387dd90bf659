"""Rows that a component emits as a data frame, by Arrow's C interface: those of Polars, pandas, DuckDB and Arrow.

The frames here are what these libraries hand over, without them: pandas 2.3 (an index among the columns, named in its
metadata), Polars 2.1 (views, large lists, several chunks, dictionaries of views), DuckDB 2.0 (several chunks).
"""

import json

import pyarrow as pa
import pytest

from pystorm_source import ArrowBolt, Bolt, Grouping, PartitionedSpout, ReliableSpout, Topology
from pystorm_source.errors import TupleFailed
from pystorm_source.spouts import MemorySpout
from pystorm_source.testing import run_topology

ROWS = [("a", 1), ("b", None), (None, 3), ("a", 4)]
TABLE = pa.table({"w": [w for w, _ in ROWS], "n": pa.array([n for _, n in ROWS], pa.int64())})


class Frame:
    """What another library has: no class of pyarrow, and read as a stream alone."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class OneArray:
    def __init__(self, batch):
        self.batch = batch

    def __arrow_c_array__(self, requested_schema=None):
        return self.batch.__arrow_c_array__(requested_schema)


def typed(text, number=None):
    return TABLE.cast(pa.schema([("w", text), ("n", number or pa.int64())]))


def cut():
    return pa.concat_tables([TABLE.slice(i, 1) for i in range(4)] + [TABLE.slice(0, 0)])


def with_index():
    index = {"index_columns": ["__index_level_0__"], "columns": []}
    table = TABLE.append_column("__index_level_0__", pa.array([5, 6, 7, 8]))
    return Frame(table.replace_schema_metadata({"pandas": json.dumps(index)}))


def with_range():
    index = {"index_columns": [{"kind": "range", "start": 0, "stop": 4, "step": 1, "name": None}], "columns": []}
    return Frame(TABLE.replace_schema_metadata({"pandas": json.dumps(index)}))


def of_views():
    return Frame(typed(pa.string_view())) if hasattr(pa, "string_view") else Frame(TABLE)


def of_dictionary():
    return Frame(TABLE.set_column(0, "w", TABLE["w"].dictionary_encode()))


FRAMES = {
    "a table": lambda: TABLE,
    "a table of several chunks": cut,
    "a reader, once": lambda: cut().to_reader(),
    "structs": lambda: pa.chunked_array([TABLE.slice(0, 2).to_struct_array().chunk(0),
                                         TABLE.slice(2).to_struct_array().chunk(0)]),
    "one array": lambda: OneArray(TABLE.to_batches()[0]),
    "a stream of several chunks": lambda: Frame(cut()),
    "views": of_views,
    "large strings, ints": lambda: Frame(typed(pa.large_string(), pa.int32())),
    "a dictionary": of_dictionary,
    "an index": with_index,
    "a range as index": with_range,
}  # fmt: skip
if not hasattr(pa.ChunkedArray, "__arrow_c_stream__"):  # as of pyarrow 15
    del FRAMES["structs"]


class EmitFrame(ArrowBolt):
    outputs = ["w string", "n long"]
    frame = None

    def process_batch(self, batch):
        self.emit_batch(type(self).frame())


class PassBatch(ArrowBolt):
    outputs = EmitFrame.outputs

    def process_batch(self, batch):
        assert batch.schema.equals(TABLE.schema)
        self.emit_batch(batch)


class PassRow(Bolt):
    outputs = EmitFrame.outputs

    def process(self, tup):
        self.emit(tup.values)


class FrameSpout(PartitionedSpout):
    outputs = EmitFrame.outputs
    frame = None

    def partitions(self):
        return ["p"]

    def latest(self, partition):
        return 1

    def open(self, partition, start, end):
        self.left = end - start

    def next_tuple(self):
        if not self.left:
            return False
        self.left = 0
        self.emit_batch(type(self).frame(), tup_id=0)


@pytest.mark.parametrize("behind", [None, PassBatch, PassRow])
@pytest.mark.parametrize("name", FRAMES)
def test_a_frame_is_its_rows(name, behind):
    emits = type("Emits", (EmitFrame,), {"frame": staticmethod(FRAMES[name])})
    one = MemorySpout.spec(fields=["x long"], rows=[[1]])
    parts = {"one": one, "bolt": emits.spec(inputs=[one])}
    if behind is not None:
        parts["behind"] = behind.spec(inputs={parts["bolt"]: Grouping.fields("w")}, par=2)
    found = run_topology(type("Made", (Topology,), parts)).rows("behind" if behind else "bolt")
    assert sorted(found, key=str) == sorted(ROWS, key=str)


@pytest.mark.parametrize("name", FRAMES)
def test_a_spout_emits_a_frame_as_one_tree(name):
    spout = type("S", (FrameSpout,), {"frame": staticmethod(FRAMES[name])}).spec()
    result = run_topology(type("Made", (Topology,), {"s": spout, "all": PassRow.spec(inputs=[spout])}))
    assert sorted(result.rows("all"), key=str) == sorted(ROWS, key=str)
    assert result.acked["s"] == 1


def test_a_reliable_spout_emits_a_frame_again_that_can_be_read_once():
    class Once(ReliableSpout):
        outputs = EmitFrame.outputs

        def initialize(self, conf, context):
            self.left = 1

        def next_tuple(self):
            if self.left:
                self.left = 0
                self.emit_batch(cut().to_reader(), tup_id="all")

    class FailsOnce(PassBatch):
        fails = 1

        def process_batch(self, batch):
            if type(self).fails:
                type(self).fails = 0
                self.fail(batch)
            else:
                self.emit_batch(batch)

    spout = Once.spec()
    result = run_topology(type("Made", (Topology,), {"s": spout, "all": FailsOnce.spec(inputs=[spout])}))
    assert sorted(result.rows("all"), key=str) == sorted(ROWS, key=str)


@pytest.mark.parametrize("name", ["a table", "views", "an index", "a stream of several chunks"])
def test_a_frame_without_rows_emits_nothing(name):
    def empty():
        frame = FRAMES[name]()
        return Frame(frame.table.slice(0, 0)) if isinstance(frame, Frame) else frame.schema.empty_table()

    emits = type("Emits", (EmitFrame,), {"frame": staticmethod(empty)})
    one = MemorySpout.spec(fields=["x long"], rows=[[1]])
    bolt = emits.spec(inputs=[one])
    made = type("Made", (Topology,), {"one": one, "bolt": bolt, "behind": PassBatch.spec(inputs=[bolt])})
    result = run_topology(made)
    assert (result.rows("behind"), result.executed["behind"], result.emitted["bolt"]) == ([], 0, 0)


def cause_of(call):
    one = MemorySpout.spec(fields=["x long"], rows=[[1]])
    bolt = type("Calls", (EmitFrame,), {"process_batch": call}).spec(inputs=[one])
    with pytest.raises(TupleFailed) as caught:
        run_topology(type("Made", (Topology,), {"one": one, "bolt": bolt}))
    return caught.value.__cause__


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.array([1]), "non-struct type int64"),
        (pa.chunked_array([[1]]), "emit_batch takes rows in columns"),
        ({"w": ["a"]}, "it has neither __arrow_c_array__ nor __arrow_c_stream__"),
    ],
)
def test_what_is_no_frame_is_refused(given, message):
    error = cause_of(lambda self, batch: self.emit_batch(given))
    assert isinstance(error, TypeError)
    assert message in str(error)
    assert error.code == "PYSTORM_EMIT_NOT_A_LIST"


def test_a_frame_has_a_column_for_each_field():
    error = cause_of(lambda self, batch: self.emit_batch(Frame(TABLE.drop_columns(["n"]))))
    assert "declares ['w', 'n']; Given: ['w']" in str(error)


@pytest.mark.parametrize("answer", [TABLE, TABLE.to_batches()[0], Frame(TABLE)])
def test_rows_that_are_returned_are_refused(answer):
    error = cause_of(lambda self, batch: answer)
    assert "emitted nothing: rows leave by emit alone, self.emit_batch(...)" in str(error)


def test_nested_text_of_other_libraries():
    lists = pa.array([["a", "b"], [], None], pa.large_list(pa.large_string()))

    class Lists(EmitFrame):
        outputs = ["tags array<string>"]

        def process_batch(self, batch):
            self.emit_batch(Frame(pa.table({"tags": lists})))

    one = MemorySpout.spec(fields=["x long"], rows=[[1]])
    made = type("Made", (Topology,), {"one": one, "bolt": Lists.spec(inputs=[one])})
    assert run_topology(made).rows("bolt") == [(["a", "b"],), ([],), (None,)]
