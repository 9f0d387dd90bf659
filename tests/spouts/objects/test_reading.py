"""What tasks of an ObjectsSpout read: fields that are not in the content, damaged Avro, odd names, sizes."""

import datetime
import io
import json
import os
import uuid
from pathlib import Path

import fastavro
import pytest

from cython_core.executors.executor import ComponentFailed
from pystorm_source.errors import SchemaError, WorldError
from pystorm_source.spouts.objects import segment, spout
from testbed.s3_server import s3_server
from tests.spouts.objects.lake import Bucket, Folder, driven, ndjson, parquet
from tests.spouts.objects.test_local import rows_of


@pytest.fixture
def lake(tmp_path):
    return Folder(tmp_path / "lake")


def avro(rows, *fields, **more):
    sink = io.BytesIO()
    named = [{"name": name, "type": type} for name, type in fields]
    fastavro.writer(sink, fastavro.parse_schema({"type": "record", "name": "r", "fields": named}), rows, **more)
    return sink.getvalue()


CONTENT = {
    "lines": b"a\n\nb\n",
    "csv": b"1\n2\n\n3\n",
    "ndjson": ndjson(range(3)),
    "parquet": parquet(range(3)),
    "avro": avro([{"id": n} for n in range(3)], ("id", "int")),
}


@pytest.mark.parametrize("format", CONTENT)
@pytest.mark.parametrize(
    "fields", [["day date"], ["_metadata struct<file_size:long>"], ["_metadata struct<file_size:long>", "day date"]]
)
def test_each_row_counts_if_no_field_is_in_the_content(lake, format, fields):
    lake.put("day=2026-01-01/1", CONTENT[format])
    values = {"day date": datetime.date(2026, 1, 1)}
    row = tuple(values.get(field, {"file_size": len(CONTENT[format])}) for field in fields)
    which = driven(lake, fields, format)
    ((name, (start, end)),) = which.driver.snapshot({}, {}).heads.items()
    assert [values for _, values in which.read(name, start, end)] == [row] * 3
    task = which.instance("task")
    task.open(name, start, end)
    assert [tuple(each.values()) for each in task.next_batch().to_pylist()] == [row] * 3


def test_the_rows_of_csv_count_without_the_header(lake):
    lake.put("day=2026-01-01/1", b"id\n1\n2\n")
    day = (datetime.date(2026, 1, 1),)
    assert rows_of(driven(lake, ["day date"], "csv", files__header=True)) == [day, day]


def test_lines_have_fields_of_the_path(lake, caplog):
    lake.put("day=2026-01-01/kind=x/1", b"a\nb\n")
    day = datetime.date(2026, 1, 1)
    fields = ["kind string", "text string", "day date"]
    assert rows_of(driven(lake, fields, "lines")) == [("x", "a", day), ("x", "b", day)]
    lake.put("day=2026-01-01/2", b"c\n")
    with pytest.raises((SchemaError, ComponentFailed)) as raised:
        rows_of(driven(lake, fields, "lines"))
    assert "must name the other fields" in str(raised.value.__cause__ or raised.value)
    assert len(rows_of(driven(lake, fields, "lines", files__malformed="skip"))) == 2
    assert "must name the other fields" in caplog.text


ROWS = [{"id": n, "text": f"row {n}"} for n in range(2000)]
FIELDS = (("id", "int"), ("text", "string"))
FAR = ("at", {"type": "long", "logicalType": "timestamp-millis"})


def damaged_block(codec):
    """Its last block has other bytes."""
    data = bytearray(avro(ROWS, *FIELDS, codec=codec, sync_interval=4000))
    at = data.rindex(data[-16:], 0, -16) + 16
    data[at + 40 : at + 80] = b"\xff" * 40
    return bytes(data)


@pytest.mark.parametrize(
    ("data", "least"),
    [
        (damaged_block("deflate"), 1000),
        (damaged_block("null"), 1000),
        (avro(ROWS, *FIELDS).replace(b'"int"', b'"imt"'), 0),
        (avro([{"id": 1, "at": 3 * 10**14}], ("id", "int"), FAR), 0),
    ],
    ids=["deflate", "null", "schema", "date"],
)
def test_damaged_avro_is_named_and_may_be_skipped(lake, data, least, caplog):
    lake.put("1", data)
    fields = ["id long", "at timestamp"] if least == 0 and b"logicalType" in data else ["id long"]
    with pytest.raises((WorldError, ComponentFailed)) as raised:
        rows_of(driven(lake, fields, "avro"))
    assert "no whole Avro object" in str(raised.value.__cause__ or raised.value)
    lake.put("2", avro([{"id": 5000, "at": 0}], ("id", "int"), FAR))
    rows = rows_of(driven(lake, fields, "avro", files__malformed="skip"))
    assert rows[-1][0] == 5000 and least < len(rows) <= 2000
    assert rows[:least] == [(n,) for n in range(least)]
    assert "no whole Avro object" in caplog.text


def test_columns_of_avro_that_are_no_field_may_be_anything(lake):
    lake.put("1", avro([{"id": 1, "odd": 1}, {"id": 2, "odd": "x"}], ("id", "int"), ("odd", ["long", "string"])))
    assert rows_of(driven(lake, format="avro")) == [(1,), (2,)]


TEXTS = {"type": "map", "values": "string"}
UUIDS = {"type": "map", "values": {"type": "string", "logicalType": "uuid"}}


def untyped(lake, rows, type):
    """What a tuple has of each record's one field, which declares no type."""
    lake.put("1", avro([{"v": each} for each in rows], ("v", type)))
    which = driven(lake, ["v"], "avro")
    ((name, (start, end)),) = which.driver.snapshot({}, {}).heads.items()
    return [value for _, (value,) in which.read(name, start, end)]


@pytest.mark.parametrize(
    ("rows", "type", "read"),
    [
        ([{"x": "1"}, {"y": "2"}], TEXTS, None),
        ([[{"x": "1"}], [{"y": "2"}]], {"type": "array", "items": TEXTS}, None),
        ([{"x": uuid.UUID(int=7)}], UUIDS, [{"x": str(uuid.UUID(int=7))}]),
        ([1, None, 2], ["null", "int", "long"], None),
        ([uuid.UUID(int=7), None], ["null", {"type": "string", "logicalType": "uuid"}], None),
    ],
)
def test_other_records_of_avro_change_no_field_without_a_type(lake, rows, type, read):
    assert untyped(lake, rows, type) == (rows if read is None else read)


@pytest.mark.parametrize("rows", [[1], ["a"], [1, "a"]])
def test_a_union_of_avro_that_has_no_type_needs_a_declared_one_whatever_its_values(lake, rows):
    with pytest.raises((SchemaError, ComponentFailed)) as raised:
        untyped(lake, rows, ["long", "string"])
    said = str(raised.value.__cause__ or raised.value)
    assert "need a declared type, such as fields=['id long']: field 'v' is a union of bigint, string" in said


def test_a_batch_of_small_objects_is_bounded_by_its_bytes(lake, monkeypatch):
    monkeypatch.setattr(spout, "_BYTES", 10_000)
    for n in range(40):
        lake.put(f"{n:02d}", json.dumps({"id": n, "text": "x" * 1000}).encode())
    which = driven(lake, ["id long", "text string"])
    ((name, (start, end)),) = which.driver.snapshot({}, {}).heads.items()
    task = which.instance("task")
    task.open(name, start, end)
    batches = list(iter(task.next_batch, None))
    assert 4 <= len(batches) <= 5
    assert [n for batch in batches for n in batch.column("id").to_pylist()] == list(range(40))


@pytest.mark.parametrize("name", ["a\nb", b"\xff", "loop"], ids=["newline", "no UTF-8", "loop"])
def test_a_name_that_cannot_be_listed_is_named(lake, name):
    lake.put("1", ndjson([1]))
    path = os.path.join(os.fsencode(lake.path), os.fsencode(name))
    os.symlink(lake.path, path) if name == "loop" else Path(os.fsdecode(path)).write_bytes(ndjson([2]))
    with pytest.raises(WorldError, match="remove the link" if name == "loop" else "rename or remove the object"):
        driven(lake).driver.snapshot({}, {})


def test_a_store_with_odd_names_and_large_objects(monkeypatch):
    monkeypatch.setattr(segment, "PART", 1000)
    with s3_server() as server:
        lake = Bucket(server, uuid.uuid4().hex)
        lake.put("1", avro(ROWS, *FIELDS))
        which = driven(lake, format="avro")
        ((name, (start, end)),) = which.driver.snapshot({}, {}).heads.items()
        assert [values for _, values in which.read(name, start, end)] == [(n,) for n in range(2000)]
        assert server.calls["get"] == -(-len(avro(ROWS, *FIELDS)) // 1000), "one request has a time limit"
        lake.put("a/./b", b"")
        with pytest.raises(WorldError, match="rename or remove the object.*in/a/./b"):
            driven(lake).driver.snapshot({}, {})
