"""What a sink refuses, and what its writers do, without Spark."""

import datetime
import json
import logging

import pyarrow as pa
import pytest
from pyspark.sql import Row

from pystorm_source import register
from pystorm_source.errors import OptionError, SchemaError, TopologyError, TupleFailed
from pystorm_source.records.record_file import RecordFile
from pystorm_source.sink.request import InputColumns
from pystorm_source.sink.row_batches import row_batches
from pystorm_source.sink.writer import RowStreamWriter, RowWriter, _Sink
from pystorm_source.source.data_source import PystormDataSource
from pystorm_source.spark.ddl import parse_type
from pystorm_source.spark.dead_letter_file import DeadLetterFile
from pystorm_source.spark.query_batch import QueryBatch
from pystorm_source.worker import warm
from tests.sink import topologies
from tests.sink.topologies import effects

IDS, _ = parse_type("struct<id: long>", "the DataFrame")
NOTES = "tests.sink.topologies:Notes"


@pytest.fixture(autouse=True)
def _cold():
    yield
    while warm._idle:
        warm._idle.popitem()[1].stop()


def source_of(topology=NOTES, **options):
    given = {key.replace("_", "."): value for key, value in options.items()}
    return PystormDataSource({"topology": topology, **given})


def test_a_topology_of_a_source():
    with pytest.raises(TopologyError, match=r"begin it with rows = Input\.spec"):
        source_of("tests.sink.topologies:Source").writer(IDS, False)
    with pytest.raises(TopologyError, match=r"begin it with rows = Input\.spec"):
        source_of("tests.sink.topologies:Source", checkpointlocation="/tmp/x")


def test_a_topology_of_a_sink_that_is_read():
    source = source_of()
    with pytest.raises(TopologyError, match="gets its rows from a DataFrame"):
        source.schema()
    with pytest.raises(TopologyError, match="gets its rows from a DataFrame"):
        source.reader(IDS)
    with pytest.raises(TopologyError, match="gets its rows from a DataFrame"):
        source.streamReader(IDS).initialOffset()


def test_a_topology_with_rows_that_would_leave():
    with pytest.raises(TopologyError, match=r"apply\(df, Topology\).*Given: passed\.default"):
        source_of("tests.sink.topologies:Leaves")


@pytest.mark.parametrize(
    ("schema", "message"),
    [("other: long", "has no such column: select it before the write"), ("id: int", r"cast\('bigint'\)")],
)
def test_columns_that_do_not_fit(schema, message):
    columns, _ = parse_type(f"struct<{schema}>", "the DataFrame")
    with pytest.raises(SchemaError, match=message):
        source_of().streamWriter(columns, False)


def test_other_modes_than_append():
    with pytest.raises(OptionError, match=r"mode\('append'\)"):
        source_of().writer(IDS, True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"topology_schedular": "inline"}, "unknown option"),
        ({"maxoffsetspertrigger": "5"}, "is for sources.*a sink takes"),
        ({"topology_dead_letter": "stream"}, "topology.dead.letter.path"),
        ({"topology_dead_letter": "drop", "topology_dead_letter_path": "/x"}, "keep one"),
    ],
)
def test_options(options, message):
    with pytest.raises(OptionError, match=message):
        source_of(checkpointlocation="/x", queryname="q", **options)


def test_a_class_of_main_by_name():
    with pytest.raises(OptionError, match="register"):
        source_of("__main__:Notes")


def test_a_registered_topology_takes_no_other():
    class Session:
        class dataSource:
            @staticmethod
            def register(source):
                Session.source = source

    assert register(Session, topologies.Notes) == "pystorm_notes"
    assert Session.source({}).writer(IDS, False).sink.request.input == "rows"
    with pytest.raises(OptionError, match="leave option 'topology' out"):
        Session.source({"topology": NOTES})


def written(tmp_path, rows, by_rows=False, **options):
    """A writer and the commit message of its one task."""
    folder = tmp_path / "effects"
    folder.mkdir(exist_ok=True)
    source = source_of(config=json.dumps({"effects": str(folder)}), **options)
    writer = source.streamWriter(IDS, False)
    if by_rows or isinstance(writer, RowStreamWriter):
        writer = RowStreamWriter(_Sink(source.request, IDS, False))
        return writer, writer.write(iter([Row(id=number) for number in rows]))
    return writer, writer.write(iter([pa.RecordBatch.from_pydict({"id": pa.array(rows, pa.int64())})]))


@pytest.mark.parametrize("by_rows", [True, False])
def test_a_task_has_drained_the_topology_when_it_returns(tmp_path, by_rows):
    writer, message = written(tmp_path, range(4, 2_504), by_rows, progress_path=str(tmp_path / "records"))
    assert [number for _, number in effects(tmp_path / "effects")] == list(range(4, 2_504))
    for batch in (7, 7, 8):
        writer.commit([message], batch)
    (path,) = (tmp_path / "records").iterdir()
    first, second = RecordFile(path).read().records
    assert (first.batch_id, second.batch_id) == (7, 8)
    assert first.rows == first.tasks.acked == first.topology.component("note").total.executed == 2_500
    assert second.topology.component("note").total.executed == 5_000


def test_a_failed_task_names_the_row(tmp_path):
    with pytest.raises(TupleFailed, match="three") as raised:
        written(tmp_path, [1, 3])
    assert "(3,) of rows.default" in str(raised.value)


@pytest.fixture
def in_a_stream(monkeypatch):
    """Tasks know the micro-batch of the stream that they are of, or whose foreachBatch they are inside of."""

    def told(number):
        batch = QueryBatch(query="0f3a", run="77", batch=number)
        monkeypatch.setattr(QueryBatch, "of", classmethod(lambda cls, task: batch))

    return told


def test_dead_letters_have_a_file_for_a_task_and_the_last_commit_counts(tmp_path, in_a_stream):
    in_a_stream(0)
    letters = tmp_path / "letters"
    writer, first = written(tmp_path, [2, 3], topology_dead_letter_path=str(letters))
    writer, again = written(tmp_path, [3, 3], topology_dead_letter_path=str(letters))
    assert [path.suffix for path in letters.iterdir()] == [".tmp", ".tmp"]
    writer.abort([first, None], 0)
    assert len(list(letters.iterdir())) == 1
    for _ in range(2):
        writer.commit([again], 0)
        (path,) = letters.iterdir()
        assert path.name == "0f3a-0000000000-part-00000.jsonl"
        assert [json.loads(line)["values"] for line in path.read_text().splitlines()] == ["[3]", "[3]"]
    _, none = written(tmp_path, [1], topology_dead_letter_path=str(letters))
    writer.commit([none], 0)
    assert list(letters.iterdir()) == [], "the micro-batch has no dead letters any more"


def of_a_batch(tmp_path, rows, **options):
    """As ``written``, of a batch write."""
    source = source_of(config=json.dumps({"effects": str(tmp_path)}), **options)
    writer = RowWriter(_Sink(source.request, IDS, False))
    return writer, writer.write(iter([Row(id=number) for number in rows]))


def test_writes_inside_of_for_each_batch_touch_no_file_of_each_other(tmp_path, in_a_stream):
    letters, records = tmp_path / "letters", tmp_path / "records"
    options = {"topology_dead_letter_path": str(letters), "progress_path": str(records)}
    in_a_stream(0)
    stream, of_stream = written(tmp_path, [3], **options)
    stream.commit([of_stream], 0)
    kept = {path: path.read_text() for path in letters.iterdir()}
    assert len(kept) == 1
    pending, tried = of_a_batch(tmp_path, [3], **options)
    for number in (0, 0, 1):
        in_a_stream(number)
        writer, message = of_a_batch(tmp_path, [3], **options)
        of_a_batch(tmp_path, [3], **options)  # of an attempt whose message is lost
        writer.commit([message])
        now = {path: path.read_text() for path in letters.glob("*.jsonl")}
        assert now.items() > kept.items()
        assert len(now) == len(kept) + 1
        kept = now
    pending.commit([tried])
    assert len(list(letters.glob("*.jsonl"))) == len(kept) + 1, "the other commits have left its file"
    assert [json.loads(text)["batch"] for text in kept.values()].count(1) == 1
    (path,) = records.iterdir()
    found = RecordFile(path).read().records
    assert [record.batch_id for record in found] == [0, 0, 0, 1, 0]
    assert [record.topology.component("note").total.executed for record in found] == [2, 4, 6, 8, 10]


def test_a_key_of_columns_that_the_bolts_do_not_take(tmp_path):
    columns, _ = parse_type("struct<order: string, id: long, Region: string>", "the DataFrame")
    source = source_of(config=json.dumps({"effects": str(tmp_path)}), key="region,order")
    writer = RowWriter(_Sink(source.request, columns, False))
    writer.write(iter([Row(order=f"o{id}", id=id, Region="eu") for id in range(4, 2_504)]))
    assert effects(tmp_path) == [(f'["eu", "o{id}"]', id) for id in range(4, 2_504)]
    with pytest.raises(SchemaError, match="key' names column 'region', and the DataFrame has no such column"):
        source.writer(IDS, False)
    with pytest.raises(OptionError, match="key' names columns"):
        source_of(key="[1]")


def test_a_failed_task_leaves_no_file_of_dead_letters(tmp_path, monkeypatch):
    """Even if it fails behind its last row."""

    def full(self):
        raise OSError("no room")

    monkeypatch.setattr(DeadLetterFile, "close", full)
    letters = tmp_path / "letters"
    with pytest.raises(OSError, match="no room"):
        written(tmp_path, [3], topology_dead_letter_path=str(letters))
    assert list(letters.iterdir()) == []


def test_without_a_folder_a_micro_batch_is_one_line_of_the_log(tmp_path, caplog):
    writer, message = written(tmp_path, [1])
    with caplog.at_level(logging.INFO, "pystorm.source"):
        writer.commit([message], 4)
    assert caplog.messages == ["Notes: micro-batch 4 is written, 1 rows"]


def test_records_that_cannot_be_written_end_no_query(tmp_path, caplog):
    (tmp_path / "file").touch()
    writer, message = written(tmp_path, [1], progress_path=str(tmp_path / "file"))
    writer.commit([message], 0)
    assert "progress.path" in caplog.text


def test_a_commit_of_no_tasks(tmp_path):
    source = source_of(progress_path=str(tmp_path))
    RowWriter(_Sink(source.request, IDS, False)).commit([])
    (path,) = tmp_path.iterdir()
    (record,) = RecordFile(path).read().records
    assert record.rows == 0


def test_rows_become_batches_of_sparks_types():
    local = datetime.datetime(2026, 1, 2, 3, 4, 5)
    kind = pa.struct([("at", pa.timestamp("us", "UTC")), ("of", pa.map_(pa.string(), pa.list_(pa.int64())))])
    columns = InputColumns((1,), (("s", None),), (kind,))
    (batch,) = row_batches(iter([Row(id=1, s=Row(at=local, of={"a": [1, None]})), Row(id=2, s=None)]), columns)
    assert batch.schema == pa.schema([("s", kind)])
    assert batch.to_pylist() == [{"s": {"at": local.astimezone(datetime.UTC), "of": [("a", [1, None])]}}, {"s": None}]
