"""ObjectsSpout over a folder of this machine's: the laws of spouts, formats, what is new, gone, overwritten and odd."""

import datetime
import gzip
import io
import json
import os
import random
from pathlib import Path

import fastavro
import pytest

from cython_core.executors.executor import ComponentFailed
from pystorm_source import Topology
from pystorm_source.errors import DataLossError, OptionError, SchemaError, WorldError
from pystorm_source.source.offsets.offsets import Offsets
from pystorm_source.spouts import ObjectsSpout
from pystorm_source.spouts.objects import log, segment
from pystorm_source.testing import run_topology
from tests.spouts.contract import PartitionedSpoutContract
from tests.spouts.drive import Query
from tests.spouts.objects.lake import Folder, driven, ndjson, parquet
from tests.spouts.test_files_columns import by_columns, by_rows


@pytest.fixture
def lake(tmp_path):
    return Folder(tmp_path / "lake")


def rows_of(which):
    """All rows, read in both ways."""
    heads = which.driver.snapshot({}, {}).heads
    rows = sorted(row for name, (start, end) in heads.items() for row in by_rows(which, name, start, end))
    columns = sorted(row for name, (start, end) in heads.items() for row in by_columns(which, name, start, end))
    assert columns == rows
    return rows


def failure(which):
    with pytest.raises((ComponentFailed, SchemaError, WorldError)) as raised:
        rows_of(which)
    return raised.value.__cause__ if isinstance(raised.value, ComponentFailed) else raised.value


class TestNamedInOffsets(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, lake):
        for n in range(5):
            lake.put(f"day={n % 2}/{n}.json", ndjson(range(10 * n, 10 * n + 7)))
        return driven(lake, ["id long", "day int"])


class TestLines(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, lake, tmp_path, monkeypatch):
        monkeypatch.setattr(segment, "PART", 100)
        for n in range(5):
            lake.put(f"{n}.json", ndjson(range(100 * n, 100 * n + 30)))
        which = driven(lake, journal=tmp_path / "journal")
        which.driver._discovery._id = "a" * 32  # of each instance, as it would be once an offset has it
        return which

    @pytest.fixture
    def ranges(self, driven):
        return dict(driven.driver.snapshot({}, {}).heads)

    def test_the_rows_are_those_of_the_objects(self, driven, ranges):
        found = sorted(values for name, (start, end) in ranges.items() for _, values in driven.read(name, start, end))
        assert found == [(n,) for part in range(5) for n in range(100 * part, 100 * part + 30)]


def test_each_format_gives_its_rows(lake):
    expected = [(n, f"row {n} é") for n in range(50)]
    sink = io.BytesIO()
    schema = {
        "type": "record",
        "name": "r",
        "fields": [{"name": "text", "type": "string"}, {"name": "id", "type": "int"}],
    }
    fastavro.writer(sink, fastavro.parse_schema(schema), [{"id": n, "text": text} for n, text in expected])
    csv = "\n".join(["text,id", *(f"{text},{n}" for n, text in expected)]).encode()
    for format, data, more in (
        ("parquet", parquet(range(50), 7), {}),
        ("ndjson", ndjson(range(50)), {}),
        ("csv", csv, {"files__header": True}),
        ("avro", sink.getvalue(), {}),
    ):
        lake.put(f"{format}/1", data)
        folder = Folder(Path(lake.path, format))
        assert rows_of(driven(folder, ["id long", "text string"], format, **more)) == expected
        if format in ("ndjson", "csv"):
            lake.delete(f"{format}/1")
            lake.put(f"{format}/1.gz", gzip.compress(data))
            assert rows_of(driven(folder, ["id long", "text string"], format, **more)) == expected
    lake.put("lines/1", b"one\r\ntwo")
    assert rows_of(driven(Folder(Path(lake.path, "lines")), ["line string"], "lines")) == [("one",), ("two",)]


@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.{json,ndjson}", ["a.json", "b.ndjson"]),
        ("{a,b{1,2}}.*", ["a.json", "b1.txt"]),
        ("[^a]*", ["b.ndjson", "b1.txt", "{c}.txt"]),
        ("[!a]*", ["b.ndjson", "b1.txt", "{c}.txt"]),
        ("{c*", ["{c}.txt"]),
        ("?.*json", ["a.json", "b.ndjson"]),
    ],
)
def test_a_glob_means_what_it_means_to_spark(lake, glob, names):
    have = ["a.json", "b.ndjson", "b1.txt", "{c}.txt"]
    for n, name in enumerate(have):
        lake.put(name, ndjson([n]))
    assert rows_of(driven(lake, pathGlobFilter=glob)) == [(have.index(name),) for name in names]


@pytest.mark.parametrize("format", ["parquet", "ndjson", "csv"])
def test_a_large_object_is_read_by_parts(lake, format, monkeypatch):
    monkeypatch.setattr(segment, "PART", 1000)
    data = {"parquet": lambda: parquet(range(3000), 100), "ndjson": lambda: ndjson(range(3000))}
    lake.put("1", data.get(format, lambda: b"id\n" + b"".join(b"%d\n" % n for n in range(3000)))())
    which = driven(lake, format=format, files__header=format == "csv")
    assert sum(map(len, map(segment.parts_named, which.driver.snapshot({}, {}).heads))) > 10
    assert rows_of(which) == [(n,) for n in range(3000)]


def test_path_and_metadata_are_fields(lake):
    lake.put("day=2026-01-01/kind=a%20b/1.json", ndjson([1]))
    lake.put("day=__HIVE_DEFAULT_PARTITION__/kind=c/2.json", ndjson([2]))
    about = "_metadata struct<file_name:string,file_size:long,file_modification_time:timestamp,etag:string>"
    first, second = rows_of(driven(lake, ["kind string", "id long", about, "day date"]))
    assert (first[0], first[1], first[3]) == ("a b", 1, datetime.date(2026, 1, 1))
    assert (second[0], second[1], second[3]) == ("c", 2, None)
    assert first[2]["file_name"] == "1.json" and first[2]["file_size"] == len(ndjson([1])) and first[2]["etag"]
    assert abs((first[2]["file_modification_time"] - datetime.datetime.now(datetime.UTC)).total_seconds()) < 3600
    with pytest.raises(OptionError, match="file_path string"):
        driven(lake, ["id long", "_metadata struct<inode:long>"])
    lake.put("day=x/kind=a/3.json", ndjson([3]))
    assert "is no date" in str(failure(driven(lake, ["id long", "day date"])))


@pytest.mark.parametrize("seed", range(3))
def test_objects_come_driver_and_checkpoint_go_and_each_row_arrives_once(lake, tmp_path, seed, monkeypatch):
    monkeypatch.setattr(segment, "PART", 400)
    monkeypatch.setattr(log, "MOST_SMALL", 4)
    chance = random.Random(seed)
    query = Query(driven(lake, journal=tmp_path / "journal"), seed)
    at = 0
    for _ in range(12):
        for _ in range(chance.choice((0, 1, 3))):
            count = chance.choice((1, 5, 60))
            lake.put(f"{chance.choice('abc')}/{chance.random()}", ndjson(range(at, at + count)))
            at += count
        query.still = query.state != {}  # before the first offset, a list has no name yet
        query.step(limit=chance.choice((None, 1, 500)), some=True)
        if chance.random() < 0.5:
            query.restart()
    query.drain(limit=400)
    assert sorted(query.rows) == [(n,) for n in range(at)]


def test_what_was_appended_but_never_planned_is_read_by_the_next_driver(lake, tmp_path):
    query = Query(driven(lake, journal=tmp_path / "journal"))
    lake.put("b", ndjson([1]))
    query.drain()
    lake.put("a", ndjson([2]))
    query.driven.driver.snapshot(query.known, query.state)  # and the driver is killed
    query.restart()
    lake.put("c", ndjson([3]))
    query.drain()
    assert sorted(query.rows) == [(1,), (2,), (3,)]


def test_a_hundred_thousand_known_objects_make_a_small_offset(lake, tmp_path):
    which = driven(lake, journal=tmp_path / "journal")
    lake.put("z", ndjson([1]))
    snapshot = which.driver.snapshot({}, {})
    found = [segment.Found(f"{n:09d}", 1 << 30, 1, "e") for n in range(100_000)]
    the_log = which.driver._discovery._log[1]
    the_log.append(segment.Segment.behind(the_log.last, found[:50_000], lambda path: False))
    the_log.append(segment.Segment.behind(the_log.last, found[50_000:], lambda path: False))
    heads, state = which.driver.snapshot({name: end for name, (_, end) in snapshot.heads.items()}, snapshot.state)[:2]
    begins, ends = ({name: head[place] for name, head in heads.items()} for place in (0, 1))
    first = Offsets({"orders": ends}, {"orders": begins}, {"orders": state}, True)  # later ones have no begins
    assert len(ends) == 16 and len(json.dumps(first.to_json())) < 2048


@pytest.mark.parametrize("journaled", [True, False])
@pytest.mark.parametrize(("overwritten", "expected"), [("ignore", [1]), ("read", [1, 2])])
def test_an_object_that_was_overwritten_after_it_was_read(lake, tmp_path, overwritten, expected, journaled):
    journal = tmp_path / "journal" if journaled else None
    query = Query(driven(lake, journal=journal, objects__overwritten=overwritten))
    lake.put("a", ndjson([1]))
    query.still = False
    query.drain()
    lake.put("a", ndjson([2]))
    query.drain()
    query.restart()
    query.drain()
    assert sorted(query.rows) == [(n,) for n in expected]


@pytest.mark.parametrize("change", ["overwritten", "gone"])
def test_an_object_that_changes_before_it_is_read_is_data_loss(lake, change, caplog):
    which = driven(lake)
    lake.put("a", ndjson([1]))
    lake.put("b", ndjson([2]))
    ((name, (start, end)),) = which.driver.snapshot({}, {}).heads.items()
    lake.put("a", ndjson([3])) if change == "overwritten" else lake.delete("a")
    with pytest.raises(ComponentFailed) as raised:
        which.read(name, start, end)
    assert isinstance(raised.value.__cause__, DataLossError) and change in str(raised.value.__cause__)
    tolerant = driven(lake, failOnDataLoss=False)
    assert [values for _, values in tolerant.read(name, start, end)] == [(2,)]
    assert change in caplog.text


@pytest.mark.parametrize("journaled", [True, False])
def test_old_objects_are_forgotten(lake, tmp_path, journaled):
    query = Query(driven(lake, journal=tmp_path / "journal" if journaled else None, objects__max__age="1h"))
    query.still = False
    lake.put("new", ndjson([1]))
    query.drain()
    lake.put("old", ndjson([2]))
    os.utime(f"{lake.path}/old", (1e9, 1e9))
    query.drain()
    assert query.rows == [(1,)]


def test_names_that_are_left_out(lake):
    for name in ("a.json", "b.txt", ".c.json", "_d.json", "_e/f.json", "g/_h/i.json", "j/k.json"):
        lake.put(name, ndjson([len(name)]))
    lake.put("empty.json", b"")
    assert rows_of(driven(lake, pathGlobFilter="*.json")) == [(6,), (8,)]
    assert rows_of(driven(lake, pathGlobFilter="*.json", objects__recursive=False)) == [(6,)]


@pytest.mark.parametrize("policy", ["fail", "skip"])
@pytest.mark.parametrize(
    ("format", "data", "says", "rows"),
    [
        ("ndjson", b'{"id": 1}\n{"id": "x"}\n{"id": 3}\n', "malformed line", [(1,), (3,)]),
        ("parquet", parquet([1, 3])[:-9], "no whole Parquet", []),
        ("avro", b"Obj\x01 no", "no whole Avro", []),
        ("csv.gz", gzip.compress(b"1\n3\n" * 1000, mtime=0)[:-8], "no whole gzip", [*[(1,)] * 1000, *[(3,)] * 1000]),
    ],
    ids=["ndjson", "parquet", "avro", "gzip"],
)
def test_what_cannot_be_read(lake, policy, format, data, says, rows, caplog):
    lake.put(f"1.{format}", data)
    lake.put("2.txt", b"")
    which = driven(lake, format=format.partition(".")[0], files__malformed=policy)
    if policy == "fail":
        assert says in str(failure(which))
        return
    assert rows_of(which) == rows
    assert says in caplog.text


def test_a_malformed_line_may_be_a_dead_letter(lake):
    lake.put("a", b"".join([b'{"id": 1}\n' * 9, b'{"id": "x"}\n', b'{"id": 2}\n']))

    class Dead(Topology):
        rows = ObjectsSpout.spec(
            path=lake.path,
            format="ndjson",
            fields=["id long"],
            config={"files.malformed": "dead-letter", "topology.dead.letter": "stream"},
        )

    result = run_topology(Dead)
    assert len(result.rows("rows")) == 10
    (dead,) = result.rows("rows", "__dead_letter")
    assert dead[-2] == '["{\\"id\\": \\"x\\"}"]' and "at byte 90" in dead[1]


def test_wrong_options_name_the_remedy(lake):
    for path, says in (
        ("relative/path", "absolute path"),
        ("hdfs://a/b", "s3://"),
        ("file://host/lake", "names no host"),
        ("s3://me:word@b/p", "has no keys in it.*Given: 's3://b/p'$"),
        ("s3://AKIA:wo/rd@b/p", "has no keys in it.*Given: 's3://b/p'$"),
        ("file://me:word@h/p", "names no host.*Given: 'file://h/p'$"),
        ("gs://word@b", "has no keys in it.*Given: 'gs://b'$"),
    ):
        with pytest.raises(OptionError, match=says):
            driven(type("Elsewhere", (), {"path": path, "options": {}}))
    with pytest.raises(OptionError, match="needs the fields"):
        driven(lake, None, "csv")
    odd = driven(type("Odd", (), {"path": "s3://b/p", "options": {"objects.config.colour": "red"}}))
    with pytest.raises(OptionError, match="objects.config"):
        odd.driver.snapshot({}, {})
    with pytest.raises(WorldError, match="is not there"):
        driven(type("Gone", (), {"path": "/no/such/folder", "options": {}})).driver.snapshot({}, {})


def test_a_damaged_list_says_what_to_do(lake, tmp_path):
    query = Query(driven(lake, journal=tmp_path / "journal"))
    query.still = False
    lake.put("a", ndjson([1]))
    query.drain()
    ((part,),) = [list(each.glob("*.arrow")) for each in (tmp_path / "journal").iterdir()]
    part.write_bytes(b"?")
    query.restart()
    with pytest.raises(Exception, match="list of known objects is damaged"):
        query.step()
