"""What lines, ndjson and csv make of bytes, whole blocks and odd lines alike."""

import datetime
import gzip
import json
import logging
from decimal import Decimal
from itertools import pairwise

import pytest

from cython_core.executors.executor import ComponentFailed
from pystorm_source.errors import OptionError, SchemaError
from pystorm_source.spouts import FilesSpout
from pystorm_source.spouts.files.options import FilesOptions
from tests.spouts.drive import Driven, Query


@pytest.fixture
def read(tmp_path):
    """Writes bytes to a file and reads them as a finished file would be read, plain and gzipped."""

    def read(data: bytes, fields=None, format="lines", **options):
        answers = []
        for name, content in (("a.txt", data), ("a.txt.gz", gzip.compress(data))):
            (tmp_path / name).write_bytes(content)
            spec = FilesSpout.spec(path=tmp_path / name, format=format, fields=fields)
            options = {f"files.{key}": value for key, value in options.items() if "." not in key} | options
            answers.append(Query(Driven(spec, {"files.finished.after": "0s", **options})).drain())
        assert answers[0] == answers[1]
        return answers[0]

    return read


def failure(read, *args, **options) -> SchemaError:
    with pytest.raises(ComponentFailed) as failed:
        read(*args, **options)
    assert isinstance(failed.value.__cause__, SchemaError)
    return failed.value.__cause__


def test_line_ends(read):
    assert read(b"unix\nwindows\r\n\r\n\nmac\rmac\nlast\r") == [
        (line,) for line in ("unix", "windows", "", "", "mac\rmac", "last")
    ]
    assert read("a\u2028b\x0bc\x0cd\x85e\n".encode()) == [("a\u2028b\x0bc\x0cd\x85e",)]
    assert read(b"\0\n\0\0\n") == [("\0",), ("\0\0",)]


def test_a_byte_order_mark_is_no_text(read):
    assert read(b"\xef\xbb\xbfone\ntwo\n") == [("one",), ("two",)]
    assert read(b"\xef\xbb\xbf\n") == [("",)]
    assert read(b'\xef\xbb\xbf{"a": 1}\n{"a": 2}\n', ["a long"], "ndjson") == [(1,), (2,)]
    assert read(b"\xef\xbb\xbfa,b\n1,2\n", ["b long", "a long"], "csv", header=True) == [(2, 1)]
    assert read(b"\xef\xbb\xbf1,2\n", ["b long", "a long"], "csv") == [(1, 2)]


def test_bytes_of_another_encoding(read, caplog):
    data = "gut\nübel\ngut\n".encode("latin-1")
    assert read(data) == [("gut",), ("\ufffdbel",), ("gut",)]
    assert read(data, encoding="latin-1") == [("gut",), ("übel",), ("gut",)]
    strict = {"files.encoding.errors": "strict"}
    message = str(failure(read, data, **strict))
    assert "a.txt" in message
    assert "at byte 4" in message
    assert "0xfc" in message
    with caplog.at_level(logging.WARNING):
        assert read(data, malformed="skip", **strict) == [("gut",), ("gut",)]
    assert "at byte 4" in caplog.text


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32-le", "no-such", "base64", "cp037", "utf-8\0"])
def test_encodings_without_the_byte_newline_are_refused(read, encoding):
    with pytest.raises(OptionError, match=r"files\.encoding"):
        read(b"", encoding=encoding)


def test_multi_byte_encodings_keep_offsets(tmp_path):
    lines = ["日本語", "テキスト", "plain", "混合 text"] * 50
    for encoding in ("shift_jis", "euc_jp", "gb18030", "big5", "utf-8"):
        usable = [line for line in lines if line.encode(encoding, "ignore").decode(encoding) == line]
        (tmp_path / "a.txt").write_bytes("".join(line + "\n" for line in usable).encode(encoding))
        driven = Driven(FilesSpout.spec(path=tmp_path / "a.txt"), {"files.encoding": encoding})
        ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
        raw = (tmp_path / "a.txt").read_bytes()
        for offset, (line,) in driven.read(name, start, end):
            assert raw[offset:].split(b"\n", 1)[0].decode(encoding) == line


@pytest.mark.parametrize(("encoding", "odd"), [("euc_jp", b"ab\x8f"), ("utf-7", b"ab+"), ("hz", b"ab~")])
@pytest.mark.parametrize("format", ["lines", "csv"])
def test_an_invalid_byte_before_a_newline_joins_no_lines(tmp_path, encoding, odd, format):
    data = odd + b"\ncd\nef\n"
    (tmp_path / "a.txt").write_bytes(data)
    spec = FilesSpout.spec(path=tmp_path / "a.txt", format=format, fields=["line string"])
    driven = Driven(spec, {"files.encoding": encoding})
    ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
    rows = list(driven.read(name, start, end))
    assert [offset for offset, _ in rows] == [0, len(odd) + 1, len(odd) + 4]
    assert [value for _, (value,) in rows][1:] == ["cd", "ef"]


def test_json_of_all_types(read):
    fields = ["n long", "x double", "b boolean", "s string", "d date", "t timestamp", "m decimal(10,2)", "any"]
    rows = [
        {"n": 1, "x": 2, "b": True, "s": "ü\n", "d": "2024-02-29", "t": "2024-02-29T12:00:00", "m": "1.50", "any": "x"},
        {"n": -(2**63), "x": 1e300, "b": False, "s": "", "t": "2024-02-29T12:00:00+02:00", "m": 2.25},
        {},
        {"n": None, "s": None, "unknown": {"deep": [1, 2]}, "any": None},
    ]
    day = datetime.date(2024, 2, 29)
    noon = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
    expected = [
        (1, 2.0, True, "ü\n", day, noon, Decimal("1.50"), "x"),
        (-(2**63), 1e300, False, "", None, noon - datetime.timedelta(hours=2), Decimal("2.25"), None),
        (None,) * 8,
        (None,) * 8,
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    assert read(text, fields, "ndjson") == expected
    assert read(text.replace(b"\n", b"\n\n"), fields, "ndjson") == expected
    assert read(text.replace(b"\n", b" \r\n"), fields, "ndjson") == expected
    assert read(text.removesuffix(b"\n"), fields, "ndjson") == expected


@pytest.mark.parametrize(
    "bad",
    [
        b'{"a": 1',
        b"[1]",
        b'{"a": 2147483648}',
        b'{"m": 1.234}',
        b'{"m": "1e9"}',
        b'{"m": "NaN"}',
        b"1",
        b'{"a": "1"}',
        b'{"a": 1.5}',
        b'{"a": 1} {"a": 2}',
        b'{"a": 99999999999999999999}',
        b"\xff",
    ],
)
def test_malformed_json_is_named_or_skipped(read, bad, caplog):
    data = b'{"a": 1}\n' + bad + b'\n{"a": 3}\n'
    message = str(failure(read, data, ["a int", "m decimal(10,2)"], "ndjson"))
    assert "a.txt" in message
    assert "at byte 9" in message
    assert "Given: " in message
    with caplog.at_level(logging.WARNING):
        assert read(data, ["a int", "m decimal(10,2)"], "ndjson", malformed="skip") == [(1, None), (3, None)]
    assert "at byte 9" in caplog.text


def test_json_that_spans_lines_is_malformed_wherever_blocks_end(read):
    data = b'{"a":\n1}\n{"a": 2}{"a": 3}\n{"a": 4}\n'
    assert read(data, ["a long"], "ndjson", malformed="skip") == [(4,)]


def test_csv_of_all_types(read):
    fields = ["n long", "x double", "b boolean", "s string", "d date", "t timestamp", "m decimal(10,2)"]
    data = (
        b"1,2.5,true,hello,2024-02-29,2024-02-29T12:00:00,1.50\n"
        b' -2 ,1e3,FALSE,"a, ""b""",2024-02-29,2024-02-29 14:00:00+02:00,-7\n'
        b",,,,,,\n"
    )
    day = datetime.date(2024, 2, 29)
    noon = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
    expected = [
        (1, 2.5, True, "hello", day, noon, Decimal("1.50")),
        (-2, 1000.0, False, 'a, "b"', day, noon, Decimal("-7.00")),
        (None,) * 7,
    ]
    assert read(data, fields, "csv") == expected
    assert read(data.replace(b"\n", b"\r\n"), fields, "csv") == expected
    assert read(data.replace(b"\n", b"\n\n"), fields, "csv") == expected


def test_csv_by_header_takes_each_file_as_it_is(tmp_path):
    (tmp_path / "1.csv").write_text("id,item,more\n1,one,x\n")
    (tmp_path / "2.csv").write_text("more;item;id\n".replace(";", ",") + 'y,"two",2\n')
    spec = FilesSpout.spec(
        path=tmp_path, format="csv", fields=["id long", "item string"], config={"files.header": True}
    )
    assert sorted(Query(Driven(spec)).drain()) == [(1, "one"), (2, "two")]


def test_csv_delimiter_and_null(read):
    data = b"1;NA;\nNA;x;y\n"
    assert read(data, ["a long", "b", "c"], "csv", delimiter=";", null="NA") == [(1, None, ""), (None, "x", "y")]
    assert read(b"a\tb\n", ["x", "y"], "csv", delimiter="\t") == [("a", "b")]


@pytest.mark.parametrize(
    "bad",
    [
        b"x,1",
        b"1",
        b"1,2,3",
        b'"1,2',
        b"1_0,2",
        b"1.5,2",
        b'1,"2"x',
        b"2147483648,1",
        b"1,2.345",
        b"1,1e9",
        b"1,nan",
        b"1," + b"9" * 5000,
    ],
)
def test_malformed_csv_is_named_or_skipped(read, bad, caplog):
    data = b"1,2\n" + bad + b"\n5,6\n"
    message = str(failure(read, data, ["a int", "b decimal(10,2)"], "csv"))
    assert "a.txt" in message
    assert "at byte 4" in message
    with caplog.at_level(logging.WARNING):
        assert read(data, ["a int", "b decimal(10,2)"], "csv", malformed="skip") == [(1, 2), (5, 6)]
    assert "at byte 4" in caplog.text
    assert "1 malformed lines in" in caplog.text


def test_a_header_without_a_field_is_named(tmp_path):
    (tmp_path / "a.csv").write_text("id,name\n1,x\n")
    spec = FilesSpout.spec(path=tmp_path, format="csv", fields=["id", "item"], config={"files.header": True})
    with pytest.raises(SchemaError, match=r"a\.csv.*item"):
        Query(Driven(spec)).drain()


def test_a_header_alone_is_no_row(read):
    assert read(b"a,b\n", ["a", "b"], "csv", header=True) == []
    assert read(b"a,b", ["a", "b"], "csv", header=True) == []


@pytest.mark.parametrize("split", [1, 2, 3, 7, 50])
def test_a_long_header_and_cuts_inside_of_it(tmp_path, split):
    columns = [f"column_{n}" for n in range(500)]
    rows = [[str(n * m) for m in range(500)] for n in range(20)]
    (tmp_path / "a.csv").write_text("\n".join(",".join(row) for row in [columns, *rows]) + "\n")
    spec = FilesSpout.spec(
        path=tmp_path, format="csv", fields=["column_499 long", "column_1 long"], config={"files.header": True}
    )
    driven = Driven(spec)
    ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
    cuts = [start, *(1000 * n // split for n in range(1, split)), end]
    found = [row for low, high in pairwise(cuts) for _, row in driven.read(name, low, high)]
    assert found == [(n * 499, n) for n in range(20)]


def test_blocks_and_lines_of_every_size(tmp_path, monkeypatch):
    """Lines longer than a block, blocks that end between CR and LF or inside a character."""
    monkeypatch.setattr("pystorm_source.spouts.files.reading.line_reader.BLOCK", 16)
    monkeypatch.setattr("pystorm_source.spouts.blocks.line_blocks.BLOCK", 16)
    monkeypatch.setattr("pystorm_source.spouts.blocks.line_blocks._SMALL", 3)
    lines = ["", "é" * 20, "x" * 100, "\r", "short", "", "€€€", "x" * 15, "y" * 16, "z" * 17]
    data = "".join(line + ("\r\n" if n % 3 == 0 else "\n") for n, line in enumerate(lines * 3)).encode()
    (tmp_path / "a.txt").write_bytes(data)
    (tmp_path / "b.txt.gz").write_bytes(gzip.compress(data))
    driven = Driven(FilesSpout.spec(path=tmp_path))
    expected = [line.removesuffix("\r") for line in data.decode().split("\n")[:-1]]
    for name, (start, end) in driven.driver.snapshot({}, {}).heads.items():
        assert [line for _, (line,) in driven.read(name, start, end)] == expected
    name = next(name for name in driven.driver.partitions() if not name.startswith("b"))
    for cut in range(1, len(data)):
        found = driven.read(name, 0, cut) + driven.read(name, cut, len(data))
        assert [line for _, (line,) in found] == expected


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({"format": "xml"}, ["a"]),
        ({"format": "csv"}, None),
        ({"format": "ndjson"}, None),
        ({"format": "csv"}, ["a array<long>"]),
        ({"format": "lines"}, ["a", "b"]),
        ({"files.finished.after": "soon"}, None),
        ({"files.header": "perhaps"}, None),
        ({"files.delimiter": ""}, None),
        ({"files.malformed": "ignore"}, None),
        ({"files.identity": "name"}, None),
        ({"path": ""}, None),
    ],
)
def test_wrong_options_are_refused(tmp_path, options, fields):
    with pytest.raises(OptionError, match="Given: "):
        Driven(FilesSpout.spec(fields=fields), {"path": str(tmp_path), **options})


@pytest.mark.parametrize(
    ("path", "remedy"),
    [
        ("s3://bucket/logs", "files.identity=path.*spark.readStream"),
        ("s3a://bucket/*.log", "spark.readStream"),
        ("abfss://c@account.dfs.core.windows.net/x", "spark.readStream"),
        ("hdfs://name/x", "spark.readStream"),
        ("https://host/x.log", "spark.readStream"),
        ("dbfs:/mnt/logs", "give '/dbfs/mnt/logs'"),
        ("DBFS:///mnt/logs/*.csv", r"give '/dbfs/mnt/logs/\*.csv'"),
        ("dbfs:/Volumes/main/raw/logs", "give '/Volumes/main/raw/logs'"),
        ("file://server/share", "no host"),
    ],
)
def test_paths_of_other_file_systems_are_refused_when_options_are_read(path, remedy):
    """Before anything is planned: the reader reads every component's options at load."""
    with pytest.raises(OptionError, match=f"(?s)'path'.*{remedy}.*Given: ") as refused:
        FilesOptions.of({"path": path})
    assert str(refused.value).endswith(f"Given: {path!r}")


@pytest.mark.parametrize("prefix", ["", "file:", "file://", "FILE://localhost"])
def test_a_file_uri_is_a_path(tmp_path, prefix):
    (tmp_path / "a:b.log").write_text("x\n")
    assert Query(Driven(FilesSpout.spec(path=f"{prefix}{tmp_path}"))).drain() == [("x",)]
    assert Query(Driven(FilesSpout.spec(path=f"{prefix}{tmp_path}/a:b.log"))).drain() == [("x",)]


def test_a_subclass_declares_fields(tmp_path):
    class Orders(FilesSpout):
        outputs = ["id long", "item string"]
        config = {"format": "ndjson"}

    (tmp_path / "a.json").write_text('{"item": "tea", "id": 7}\n')
    assert Query(Driven(Orders.spec(path=tmp_path))).drain() == [(7, "tea")]


@pytest.mark.parametrize(("format", "data"), [("csv", b"7,1.25\n"), ("ndjson", b'{"id": 7, "price": 1.25}\n')])
def test_a_field_that_may_not_be_null_has_its_type(read, format, data):
    assert read(data, ["id int not null", "price decimal(10,2) not null"], format) == [(7, Decimal("1.25"))]


UNFIT = [
    ("int not null", "7", [None]),
    ("string not null", '"a"', [None]),
    ("array<int> not null", "[1]", [None]),
    ("array<int>", "[1]", ['"x"', '["x"]', "[3000000000]"]),
    ("struct<a: int not null>", '{"a": 1}', ['"x"', '{"a": null}', "{}", '{"a": "x"}']),
    ("map<string,int>", '{"a": 1}', ['{"a": "x"}']),
    ("float", "1.5", ["1e300"]),
    ("timestamp", '"2024-02-29T01:00:00"', ['"0001-01-01T00:00:00+10:00"']),
    ("timestamp_ntz", '"2024-02-29T01:00:00"', ['"2024-02-29T01:00:00+01:00"']),
    ("time", '"10:00:00"', ['"x"']),
]


@pytest.mark.parametrize(("ddl", "fit", "unfit"), UNFIT)
def test_what_the_declared_type_cannot_hold_is_malformed_ndjson(read, ddl, fit, unfit):
    texts = [text for text in unfit if text is not None]
    lines = [f'{{"x": {text}}}' for text in [*texts, *(["null"] if None in unfit else [])]]
    lines += ["{}"] if None in unfit else []
    good = f'{{"x": {fit}}}\n'.encode()
    (row,) = read(good, [f"x {ddl}"], "ndjson")
    for line in lines:
        data = good + line.encode() + b"\n" + good
        assert read(data, [f"x {ddl}"], "ndjson", malformed="skip") == [row, row], line
        assert f"at byte {len(good)}" in str(failure(read, data, [f"x {ddl}"], "ndjson"))


@pytest.mark.parametrize(
    ("ddl", "fit", "unfit"),
    [
        ("int not null", "7", ""),
        ("string not null", "a", ""),
        ("float", "1.5", "1e300"),
        ("timestamp", "2024-02-29T01:00:00", "0001-01-01T00:00:00+10:00"),
        ("timestamp_ntz", "2024-02-29T01:00:00", "2024-02-29T01:00:00+01:00"),
    ],
)
def test_what_the_declared_type_cannot_hold_is_malformed_csv(read, ddl, fit, unfit):
    fields = ["n int", f"x {ddl}"]
    (row,) = read(f"1,{fit}\n".encode(), fields, "csv")
    data = f"1,{fit}\n2,{unfit}\n1,{fit}\n".encode()
    assert read(data, fields, "csv", malformed="skip") == [row, row]
    said = str(failure(read, data, fields, "csv"))
    assert f"at byte {len(fit) + 3}" in said and "field 'x'" in said


def test_brackets_without_an_end_are_malformed(read):
    data = b'{"x": 1}\n{"x": ' + b"[" * 100_000 + b'}\n{"x": 2}\n'
    assert read(data, ["x"], "ndjson", malformed="skip") == [(1,), (2,)]
