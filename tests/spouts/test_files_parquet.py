"""``format=parquet``: whole files, by row groups; what is torn, odd, wrong or written anew."""

import datetime
import decimal
import json
import os
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cython_core.executors.executor import ComponentFailed
from pystorm_source import ArrowBolt, Bolt, Topology
from pystorm_source.errors import DataLossError, OptionError, SchemaError, WorldError
from pystorm_source.spouts import FilesSpout
from pystorm_source.testing import ManualClock, run_topology
from tests.spouts.contract import PartitionedSpoutContract
from tests.spouts.drive import Driven, Query
from tests.spouts.test_files_columns import by_columns, by_rows

IDS = ["id long"]
NOW = 4e9


def table(start, end):
    return pa.table({"id": pa.array(range(start, end), pa.int64()), "text": [f"row {n} é" for n in range(start, end)]})


def write(path, data, rows=None, **options):
    path.parent.mkdir(exist_ok=True, parents=True)
    pq.write_table(data if isinstance(data, pa.Table) else pa.table(data), path, row_group_size=rows, **options)
    return path


def spec(path, fields=IDS, **config):
    return FilesSpout.spec(path=path, format="parquet", fields=fields, config=config)


def driven(path, fields=IDS, **config):
    return Driven(spec(path, fields, **config))


def rows_of(which):
    """All rows, read in both ways."""
    heads = which.driver.snapshot({}, {}).heads
    rows = [row for name, (start, end) in sorted(heads.items()) for row in by_rows(which, name, start, end)]
    columns = [row for name, (start, end) in sorted(heads.items()) for row in by_columns(which, name, start, end)]
    assert columns == rows
    return rows


def failure(which):
    with pytest.raises((ComponentFailed, SchemaError, WorldError)) as raised:
        rows_of(which)
    return raised.value.__cause__ if isinstance(raised.value, ComponentFailed) else raised.value


class TestManyRowGroups(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, tmp_path):
        for n in range(3):
            write(tmp_path / f"{n}.parquet", table(100 * n, 100 * n + 60), 7)
        write(tmp_path / "none.parquet", table(0, 0))
        return driven(tmp_path, ["id long", "text string"])

    def test_the_rows_are_those_of_the_files(self, driven, ranges):
        found = sorted(values for name, (start, end) in ranges.items() for _, values in driven.read(name, start, end))
        expected = [n for part in range(3) for n in range(100 * part, 100 * part + 60)]
        assert found == [(n, f"row {n} é") for n in expected]


class TestKnownByPath(PartitionedSpoutContract):
    @pytest.fixture
    def driven(self, tmp_path):
        write(tmp_path / "day=1" / "a.parquet", table(0, 40), 10)
        write(tmp_path / "day=2" / "a.parquet", table(0, 40), 10)
        return driven(tmp_path, ["day int", "text string"], **{"files.identity": "path", "files.recursive": True})


@pytest.mark.parametrize("seed", range(4))
def test_files_come_driver_and_checkpoint_go_and_each_row_arrives_once(tmp_path, seed):
    chance = random.Random(seed)
    query = Query(driven(tmp_path), seed)
    at = 0
    for number in range(8):
        count = chance.choice((0, 1, 50, 300))
        write(tmp_path / f"{number}.parquet", table(at, at + count), chance.choice((3, 20, 1000)))
        at += count
        query.step(limit=chance.choice((None, 1, 500)), some=True)
        if chance.random() < 0.5:
            query.restart()
    query.drain(limit=400)
    assert sorted(query.rows) == [(n,) for n in range(at)]


def test_a_task_that_dies_in_the_middle_is_replayed_alike(tmp_path):
    write(tmp_path / "a.parquet", table(0, 1000), 100)
    which = driven(tmp_path)
    ((name, (start, end)),) = which.driver.snapshot({}, {}).heads.items()
    dies = which.instance("task")
    dies.open(name, start, end)
    assert dies.next_batch().num_rows == 100
    del dies
    os.rename(tmp_path / "a.parquet", tmp_path / "b.parquet")
    assert by_columns(which, name, start, end) == [(n,) for n in range(1000)]
    assert which.instance("driver").snapshot({name: end}, {}).heads == {name: (0, end)}


def test_ranges_are_cut_where_row_groups_begin(tmp_path):
    path = write(tmp_path / "a.parquet", table(0, 1000), 100)
    which = driven(tmp_path)
    ((name, (start, end)),) = which.driver.snapshot({}, {}).heads.items()
    assert end == path.stat().st_size
    cuts, at = [], start
    while at < end:
        at = which.driver.align(name, at, at + 1)
        cuts.append(at)
    assert len(cuts) == 10 and cuts[-1] == end
    read = [by_rows(which, name, low, high) for low, high in zip([start, *cuts], cuts, strict=False)]
    assert [len(rows) for rows in read] == [100] * 10


def test_a_file_waits_until_it_has_a_footer(tmp_path):
    data = write(tmp_path.parent / f"{tmp_path.name}-elsewhere" / "a.parquet", table(0, 100)).read_bytes()
    query = Query(driven(tmp_path))
    for part in (0, 1, 4, 11, 12, len(data) // 2, len(data) - 1):
        (tmp_path / "a.parquet").write_bytes(data[:part])
        assert query.step() == []
    (tmp_path / "a.parquet").write_bytes(data)
    assert query.step() == [(n,) for n in range(100)]
    (tmp_path / "b.parquet").write_bytes(bytes(len(data)))  # room that a copy takes beforehand
    assert query.step() == []


def test_a_file_that_never_becomes_whole_is_an_error_that_names_it(tmp_path, caplog):
    data = write(tmp_path / "a.parquet", table(0, 100)).read_bytes()
    write(tmp_path / "b.parquet", table(0, 3))
    (tmp_path / "a.parquet").write_bytes(data[:-9])
    torn = {"files.finished.after": "0s"}
    error = failure(driven(tmp_path, **torn))
    assert type(error) is WorldError
    assert "a.parquet' is no whole Parquet file" in str(error) and "Given: [0, " in str(error)
    assert rows_of(driven(tmp_path, **torn, **{"files.malformed": "skip"})) == [(0,), (1,), (2,)]
    assert "a.parquet' is no whole Parquet file" in caplog.text


def test_a_torn_file_that_was_passed_over_is_read_once_it_is_whole(tmp_path):
    data = write(tmp_path / "a.parquet", table(0, 5)).read_bytes()
    (tmp_path / "a.parquet").write_bytes(data[:-9])
    query = Query(driven(tmp_path, **{"files.finished.after": "0s", "files.malformed": "skip"}))
    assert query.step() == []
    (tmp_path / "a.parquet").write_bytes(data)
    assert query.step() == [(n,) for n in range(5)]


def test_what_writers_of_spark_leave_is_not_read(tmp_path):
    write(tmp_path / "part-00000-1f.snappy.parquet", table(0, 2))
    write(tmp_path / "_temporary" / "0" / "part-00000.parquet", table(0, 2))
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / ".part-00000-1f.snappy.parquet.crc").write_bytes(b"crc")
    config = {"files.recursive": True, "files.finished.after": "0s"}
    assert rows_of(driven(tmp_path, **config)) == [(0,), (1,)]


@pytest.mark.parametrize("compression", ["none", "gzip", "zstd"])
def test_files_of_the_same_rows_and_names_like_copies_are_each_read(tmp_path, compression):
    for name in ("a.parquet", "a.parquet.1", "a-1.parquet", "a-20240229.parquet"):
        write(tmp_path / name, table(0, 2), compression=compression)
    assert rows_of(driven(tmp_path)) == [(0,), (1,)] * 4


# Written anew


def test_a_file_that_is_replaced_or_written_anew_after_it_was_read_is_new(tmp_path):
    query = Query(driven(tmp_path))
    path = write(tmp_path / "a.parquet", table(0, 3))
    assert len(query.step()) == 3
    for count in (3, 400):  # as long as before, and longer
        path.write_bytes(write(tmp_path.with_name(f"{tmp_path.name}-{count}"), table(10, 10 + count)).read_bytes())
        query.still = True
        assert query.step() == [(n,) for n in range(10, 10 + count)]
    os.replace(write(tmp_path / ".a", table(50, 52)), path)
    assert query.step() == [(50,), (51,)]


def test_a_file_that_is_written_anew_before_it_was_read_is_lost(tmp_path):
    path = write(tmp_path / "a.parquet", table(0, 1000), 10)
    anew = write(tmp_path.with_name(f"{tmp_path.name}-anew"), table(0, 3)).read_bytes()
    which = driven(tmp_path)
    snapshot = which.driver.snapshot({}, {})
    ((name, (start, end)),) = snapshot.heads.items()
    cut = which.driver.align(name, start, end // 2)
    after = which.driver.snapshot({name: cut}, dict(snapshot.state))
    path.write_bytes(anew)
    with pytest.raises(DataLossError, match=r"a\.parquet' was overwritten: it was read up to .*failOnDataLoss=false"):
        which.driver.snapshot({name: cut}, dict(after.state))
    task = which.instance("task")
    with pytest.raises(DataLossError, match=r"a\.parquet' was overwritten before it was read"):
        task.open(name, cut, end)
    path.unlink()
    with pytest.raises(DataLossError, match="is gone before it was read"):
        task.open(name, cut, end)


def test_what_is_read_while_the_file_is_written_anew_is_not_emitted(tmp_path):
    path = write(tmp_path / "a.parquet", table(0, 100_000), 50_000)
    which = driven(tmp_path)
    ((name, (start, end)),) = which.driver.snapshot({}, {}).heads.items()
    task = which.instance("task")
    task.open(name, start, end)
    assert task.next_batch().num_rows == 16_384
    path.write_bytes(write(tmp_path.with_name(f"{tmp_path.name}-anew"), table(7, 100_007), 50_000).read_bytes())
    with pytest.raises(DataLossError, match="overwritten"):
        task.next_batch()


# Fields and types


def test_only_declared_fields_are_read_in_their_order(tmp_path, monkeypatch):
    columns = {name: pa.array([name]) for name in ("a", "b", "a.b", "c")}
    write(tmp_path / "a.parquet", columns)
    asked = []
    read = pq.ParquetFile.iter_batches

    def noted(self, size, groups, columns, **more):
        asked.append(columns)
        return read(self, size, groups, columns, **more)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", noted)
    assert rows_of(driven(tmp_path, ["c string", "a string", "a.b string"])) == [("c", "a", "a.b")]
    assert asked[0] == ["c", "a", "a.b"]


UTC = datetime.UTC
NESTED = pa.struct([("x", pa.int32()), ("y", pa.list_(pa.string()))])
TYPES = [
    (pa.array([1, None], pa.int32()), "long", [1, None]),
    (pa.array([1, 2], pa.int64()), "int", [1, 2]),
    (pa.array([0.5, None]), "float", [0.5, None]),
    (pa.array(["a", "a"]).dictionary_encode(), "string", ["a", "a"]),
    (pa.array(["a", None], pa.large_string()), "string", ["a", None]),
    (pa.array([b"a", b"\xff"]), "binary", [b"a", b"\xff"]),
    (pa.array([decimal.Decimal("1.50")]), "decimal(10,2)", [decimal.Decimal("1.50")]),
    (pa.array([datetime.date(2024, 2, 29)]), "date", [datetime.date(2024, 2, 29)]),
    (pa.array([1_000], pa.timestamp("us", "UTC")), "timestamp", [datetime.datetime(1970, 1, 1, 0, 0, 0, 1_000, UTC)]),
    (pa.array([1_000], pa.timestamp("ms")), "timestamp_ntz", [datetime.datetime(1970, 1, 1, 0, 0, 1)]),
    (
        pa.array([{"x": 1, "y": ["a", None]}, None], NESTED),
        "struct<x: int, y: array<string>>",
        [{"x": 1, "y": ["a", None]}, None],
    ),
    (pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())), "map<string, long>", [[("a", 1)], None]),
    (pa.array([[[1], []], None], pa.list_(pa.list_(pa.int64()))), "array<array<int>>", [[[1], []], None]),
    (pa.nulls(2), "string", [None, None]),
]


@pytest.mark.parametrize(("array", "ddl", "expected"), TYPES, ids=[ddl for _, ddl, _ in TYPES])
def test_types_without_loss(tmp_path, array, ddl, expected):
    write(tmp_path / "a.parquet", {"id": list(range(len(array))), "f": array})
    assert rows_of(driven(tmp_path, [f"f {ddl}", "id int"])) == [(value, n) for n, value in enumerate(expected)]


def test_timestamps_of_96_bits_are_instants_as_spark_writes_them(tmp_path):
    moment = datetime.datetime(2024, 2, 29, 12, 0, 0, 123456)
    far = datetime.datetime(1500, 1, 1)
    nested = pa.struct([("n", pa.int64()), ("at", pa.list_(pa.timestamp("us")))])
    columns = {
        "n": [1, 2],
        "at": pa.array([moment, far], pa.timestamp("us")),
        "deep": pa.array([{"n": 1, "at": [moment]}, None], nested),
    }
    write(tmp_path / "a.parquet", columns, use_deprecated_int96_timestamps=True, store_schema=False)
    in_utc = moment.replace(tzinfo=UTC)
    rows = rows_of(driven(tmp_path, ["deep struct<n: long, at: array<timestamp>>", "at timestamp"]))
    assert rows == [({"n": 1, "at": [in_utc]}, in_utc), (None, far.replace(tzinfo=UTC))]


def test_fields_without_a_type_are_given_as_they_are(tmp_path):
    write(tmp_path / "a.parquet", {"id": pa.array([1], pa.int16()), "m": [[1.5]]})
    which = driven(tmp_path, ["m", "id"])
    ((name, (start, end)),) = which.driver.snapshot({}, {}).heads.items()
    assert by_rows(which, name, start, end) == [([1.5], 1)]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (["id string"], "column 'id' of .* is int64, of which field 'id' string takes nothing"),
        (["text timestamp"], "column 'text' of .* is string, of which"),
        (["other long"], r"has no column other.*Given: \['id', 'text'\]"),
    ],
)
def test_a_file_of_other_columns_is_an_error_or_is_left_out(tmp_path, fields, said, caplog):
    write(tmp_path / "a.parquet", table(0, 3))
    for malformed in ("fail", "dead-letter"):
        error = failure(driven(tmp_path, fields, **{"files.malformed": malformed}))
        assert type(error) is SchemaError and error.code == "PYSTORM_SCHEMA_MISMATCH"
        with pytest.raises(SchemaError, match=said):
            raise error
    assert rows_of(driven(tmp_path, fields, **{"files.malformed": "skip"})) == []
    assert "a.parquet" in caplog.text


ODD = {"id": [1, 2**40, 3, None, 5], "s": ["a", "b", "c", "d", "e"]}
ODD_FIELDS = ["id int not null", "s string"]


def test_values_that_do_not_fit_are_malformed_rows(tmp_path, caplog):
    write(tmp_path / "a.parquet", ODD)
    error = failure(driven(tmp_path, ODD_FIELDS))
    assert type(error) is SchemaError and error.code == "PYSTORM_MALFORMED_RECORD"
    said = str(error)
    assert "malformed row in" in said
    assert "a.parquet' at byte 0: row 1 of its row group: field 'id': 1099511627776 of type int64" in said
    assert rows_of(driven(tmp_path, ODD_FIELDS, **{"files.malformed": "skip"})) == [(1, "a"), (3, "c"), (5, "e")]
    assert "2 malformed rows" in caplog.text


class Pass(Bolt):
    outputs = ["id int"]

    def process(self, tup):
        self.emit([tup.values.id])


class PassBatch(ArrowBolt):
    outputs = ["id int"]

    def process_batch(self, batch):
        self.emit_batch(batch.select([0]))


@pytest.mark.parametrize("bolt", [None, Pass, PassBatch])
def test_malformed_rows_are_dead_letters_whoever_takes_the_others(tmp_path, bolt):
    write(tmp_path / "a.parquet", ODD)
    config = {"files.malformed": "dead-letter", "topology.dead.letter": "stream"}
    rows = spec(tmp_path, ODD_FIELDS, **config)
    body = {"rows": rows} | ({} if bolt is None else {"passed": bolt.spec(inputs=[rows])})
    result = run_topology(type("Made", (Topology,), body), clock=ManualClock(now=NOW))
    assert [row[0] for row in result.rows("rows" if bolt is None else "passed")] == [1, 3, 5]
    letters = result.rows("rows", "__dead_letter")
    assert [json.loads(json.loads(letter[5])[0]) for letter in letters] == [
        {"id": 2**40, "s": "b"},
        {"id": None, "s": "d"},
    ]


def test_a_tuple_that_fails_is_emitted_again(tmp_path):
    class Fails(Bolt):
        outputs = ["id int"]
        exit_on_exception = False
        failed: set = set()

        def process(self, tup):
            if tup.values.id % 10 == 3 and tup.values.id not in self.failed:
                self.failed.add(tup.values.id)
                raise ValueError("once")
            self.emit([tup.values.id])

    write(tmp_path / "a.parquet", {"id": list(range(50))}, 20)
    rows = spec(tmp_path, ["id int"])
    body = {"rows": rows, "out": Fails.spec(inputs=[rows])}
    result = run_topology(type("Made", (Topology,), body), clock=ManualClock(now=NOW))
    assert sorted(result.rows("out")) == [(n,) for n in range(50)]
    assert len(Fails.failed) == 5


def test_what_python_has_no_value_for_is_malformed_among_tuples(tmp_path):
    write(tmp_path / "a.parquet", {"at": pa.array([0, 400_000_000_000_000], pa.timestamp("ms", "UTC"))})
    which = driven(tmp_path, ["at timestamp"])
    ((name, (start, end)),) = which.driver.snapshot({}, {}).heads.items()
    with pytest.raises(ComponentFailed) as raised:
        by_rows(which, name, start, end)
    assert "malformed row" in str(raised.value.__cause__)


def test_text_that_is_no_utf8_is_malformed(tmp_path):
    raw = pa.array([b"a", b"\xff", "é".encode()])
    text = pa.StringArray.from_buffers(3, *raw.buffers()[1:])
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), text)
    write(tmp_path / "a.parquet", {"t": text, "l": lists})
    skip = {"files.malformed": "skip"}
    assert rows_of(driven(tmp_path, ["t string"], **skip)) == [("a",), ("é",)]
    assert rows_of(driven(tmp_path, ["l array<string>"], **skip)) == [(["a"],), (["é"],)]


def test_fields_may_be_directories_as_spark_writes_them(tmp_path):
    for day, shop in (("2024-02-29", "a%20b"), ("__HIVE_DEFAULT_PARTITION__", "c")):
        write(tmp_path / f"day={day}" / f"shop={shop}" / "x.parquet", table(0, 2))
    fields = ["shop string", "id int", "day date"]
    config = {"files.recursive": True}
    expected = [("a b", n, datetime.date(2024, 2, 29)) for n in range(2)] + [("c", n, None) for n in range(2)]
    assert sorted(rows_of(driven(tmp_path, fields, **config)), key=str) == sorted(expected, key=str)
    assert rows_of(driven(tmp_path / "day=2024-02-29", ["shop string"], **config)) == [("a b",)] * 2
    assert "which its directory names, is no int" in str(failure(driven(tmp_path, ["day int"], **config)))


def test_a_damaged_row_group_fails_or_is_left_out(tmp_path, caplog):
    path = write(tmp_path / "a.parquet", table(0, 300), 100, compression="gzip", use_dictionary=False)
    group = pq.read_metadata(path).row_group(1).column(0)
    data = bytearray(path.read_bytes())
    begin = group.data_page_offset
    data[begin + 30 : begin + group.total_compressed_size] = bytes(group.total_compressed_size - 30)
    path.write_bytes(data)
    error = failure(driven(tmp_path))
    assert type(error) is WorldError and "a.parquet' is no whole Parquet file, or is damaged" in str(error)
    expected = [(n,) for n in (*range(100), *range(200, 300))]
    assert rows_of(driven(tmp_path, **{"files.malformed": "skip"})) == expected
    assert "is damaged" in caplog.text


def test_fields_are_needed(tmp_path):
    with pytest.raises((OptionError, ComponentFailed), match="needs the fields to read"):
        Driven(FilesSpout.spec(path=tmp_path, format="parquet"))
