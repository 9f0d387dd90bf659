"""Blocks of lines as Arrow columns: the same rows as line by line, whatever the files hold."""

import gzip
import itertools
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cython_core.executors.executor import ComponentFailed
from pystorm_source import ArrowBolt, Bolt, Topology
from pystorm_source.errors import SchemaError, TupleFailed
from pystorm_source.plan import compile_plan
from pystorm_source.spouts import FilesSpout
from pystorm_source.worker.output import OutputPlan
from pystorm_source.worker.worker import Worker
from tests.formats.odd_values import CELLS, CSV_TYPES, JSON_TYPES, VALUES
from tests.sizes import sized
from tests.spouts.drive import Driven

ODD = {"files.finished.after": "0s", "failOnDataLoss": "true"}


def by_columns(driven, name, start, end):
    spout = driven.instance("task")
    spout.open(name, start, end)
    rows = []
    while (batch := spout.next_batch()) is not None:
        batch.validate(full=True)
        assert batch.schema == spout._format.schema
        rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    spout.close()
    return rows


def by_rows(driven, name, start, end):
    return [values for _, values in driven.read(name, start, end)]


def outcome(read, driven, ranges):
    """Rows as text, in which NaN equals NaN and -0.0 is not 0.0; or the message of the error."""
    rows = []
    try:
        for name, start, end in ranges:
            rows += read(driven, name, start, end)
    except ComponentFailed as error:
        return str(error.__cause__)
    except SchemaError as error:
        return str(error)
    return repr(rows)


def assert_same(data, block, cuts, packed=False, **options):
    """Reads a file of these bytes in both ways, in ranges cut at ``cuts`` and blocks of about ``block`` bytes."""
    folder = Path(tempfile.mkdtemp())
    fields = options.pop("fields", None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pystorm_source.spouts.files.reading.line_reader.BLOCK", block)
        patch.setattr("pystorm_source.spouts.blocks.line_blocks.BLOCK", block)
        patch.setattr("pystorm_source.spouts.blocks.line_blocks._SMALL", 3)
        try:
            path = folder / ("a.txt.gz" if packed else "a.txt")
            path.write_bytes(gzip.compress(data) if packed else data)
            spec = FilesSpout.spec(path=path, format=options.pop("format"), fields=fields)
            for malformed in ("skip", "fail"):
                driven = Driven(spec, {**ODD, **options, "files.malformed": malformed})
                heads = driven.driver.snapshot({}, {}).heads
                ranges = []
                for name, (start, end) in heads.items():
                    inside = [] if packed else sorted({cut for cut in cuts if start < cut < end})
                    edges = itertools.pairwise([start, *inside, end])
                    ranges += [(name, low, high) for low, high in edges]
                assert outcome(by_columns, driven, ranges) == outcome(by_rows, driven, ranges)
        finally:
            shutil.rmtree(folder)


blocks = st.sampled_from([1, 7, 40, 1 << 20])
cuts = st.lists(st.integers(1, 400), max_size=3)
ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", "\r\r\n", " \n"])


def joined(lines, line_ends, last):
    return "".join(itertools.chain(*zip(lines, itertools.cycle(line_ends), strict=False))) + last


@st.composite
def texts(draw):
    alphabet = st.sampled_from(["a", "b", "é", "€", "𝄞", "\r", "\n", "\0", "\ufeff", "\x85", "\u2028", "日"])
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "latin-1", "cp1252", "shift_jis", "gb18030"]))
    text = draw(st.text(alphabet, max_size=60)).encode(encoding, "ignore")
    odd = draw(st.sampled_from([b"", b"", b"\xff", b"\x81", b"\xe2\x82", b"\xef\xbb\xbf"]))
    at = draw(st.integers(0, len(text)))
    errors = draw(st.sampled_from(["replace", "strict"]))
    return text[:at] + odd + text[at:], {"files.encoding": encoding, "files.encoding.errors": errors}


@given(texts(), blocks, cuts, st.booleans())
@settings(max_examples=sized(150))
def test_lines_are_the_same(text, block, cuts, packed):
    data, options = text
    assert_same(data, block, cuts, packed, format="lines", **options)


@st.composite
def tables(draw):
    types = draw(st.lists(st.sampled_from(CSV_TYPES), min_size=1, max_size=3))
    fields = [f"f{n} {ddl}" + draw(st.sampled_from(["", "", "", " not null"])) for n, ddl in enumerate(types)]
    delimiter = draw(st.sampled_from([",", ",", ";", "\t", "|", " "]))
    width = len(types) + draw(st.sampled_from([0, 0, 0, 1]))
    cell = st.sampled_from(draw(st.lists(st.sampled_from(CELLS), min_size=1, max_size=5)))
    rows = draw(st.lists(st.lists(cell, min_size=width, max_size=width), max_size=6))
    lines = [delimiter.join(row) for row in rows]
    header = draw(st.booleans())
    if header:
        lines.insert(0, delimiter.join(f"f{n}" for n in reversed(range(width))))
    text = joined(lines, draw(st.lists(ends, min_size=1, max_size=3)), draw(st.sampled_from(["", "", "1", "\r"])))
    options = {"files.header": str(header), "files.delimiter": delimiter}
    options["files.null"] = draw(st.sampled_from(["", "NA"]))
    return text.encode(), {"fields": fields, **options}


@pytest.mark.campaign
@given(tables(), blocks, cuts, st.booleans())
@settings(max_examples=sized(400))
def test_csv_is_the_same(table, block, cuts, packed):
    data, options = table
    assert_same(data, block, cuts, packed, format="csv", **options)


@st.composite
def objects(draw):
    types = draw(st.lists(st.sampled_from(JSON_TYPES), min_size=1, max_size=3))
    fields = [f"f{n} {ddl}" + draw(st.sampled_from(["", "", "", " not null"])) for n, ddl in enumerate(types)]
    value = st.sampled_from(draw(st.lists(st.sampled_from(VALUES), min_size=1, max_size=4)))
    names = [*(f"f{n}" for n in range(len(types))), "f0", "other", r"\u00660"]
    member = st.builds(lambda name, value: f'"{name}": {value}', st.sampled_from(names), value)
    line = st.one_of(
        st.lists(member, max_size=4).map(lambda members: "{" + ", ".join(members) + "}"),
        st.lists(member, max_size=4, unique_by=lambda member: member[:6]).map(lambda each: "{" + ",".join(each) + "}"),
        st.sampled_from(["", " ", "1", "[]", '{"f0":\n1}', '{"f0": 1}{"f0": 2}', '{"f0": 1} {"f0": 2}', "\ufeff{}"]),
    )
    lines = draw(st.lists(line, max_size=6))
    text = joined(lines, draw(st.lists(ends, min_size=1, max_size=3)), draw(st.sampled_from(["", "", "{}", "\r"])))
    odd = draw(st.sampled_from([b"", b"", b"", b"\xff", b"\xed\xa0\x80"]))
    data = text.encode()
    at = draw(st.integers(0, len(data)))
    return data[:at] + odd + data[at:], fields


@pytest.mark.campaign
@given(objects(), blocks, cuts, st.booleans())
@settings(max_examples=sized(400))
def test_ndjson_is_the_same(document, block, cuts, packed):
    data, fields = document
    assert_same(data, block, cuts, packed, format="ndjson", fields=fields)


USUAL = {
    "lines": (b"one\r\ntwo \xc3\xa9\n\nfour\n", ["line string"], {}),
    "csv": (
        b'x,n,s,p,b,d,t\n9,1,"a, ""b""",1.5,true,2024-02-29,2024-02-29 12:00:00\n\n'
        b"9,,0x1F,-2,FALSE,,2024-02-29T12:00:00.5\r\n",
        ["n int", "s string", "p float", "b boolean", "d date", "t timestamp"],
        {"files.header": True},
    ),
    "ndjson": (
        b'{"n": 1, "level": "Info", "p": 1.5, "m": 2.25, "d": "2024-02-29", "t": "2024-02-29T12:00:00Z"}\n'
        b'{"a": [1, null], "z": {"x": 1}, "m": "1.5", "t": null, "n": 7}\r\n',
        ["n int not null", "p float", "m decimal(6,2)", "d date", "t timestamp", "a array<int>", "z struct<x: long>"],
        {},
    ),
}
formats = pytest.mark.parametrize("format", USUAL)


def made(path, format, data=None, cls=FilesSpout, **options):
    content, fields, config = USUAL[format]
    path.write_bytes(content if data is None else data)
    return cls.spec(path=path, format=format, fields=fields, config={"files.finished.after": "0s", **config, **options})


@formats
def test_no_usual_block_is_read_line_by_line(tmp_path, format, monkeypatch):
    driven = Driven(made(tmp_path / "a", format))
    ((name, (start, end)),) = driven.driver.snapshot({}, {}).heads.items()
    expected = by_rows(driven, name, start, end)
    assert len(expected) == len(USUAL[format][0].splitlines()) - (2 if format == "csv" else 0)
    spout = driven.instance("task")
    monkeypatch.setattr(spout._format, "pairs", lambda *block: pytest.fail("line by line"))
    spout.open(name, start, end)
    batch = spout.next_batch()
    assert list(zip(*(column.to_pylist() for column in batch.columns), strict=True)) == expected
    assert spout.next_batch() is None


def through_worker(body, offset=False):
    """(Rows that leave, the report) of one range of the spout ``lines``, as a task reads it."""
    plan = compile_plan(type("Made", (Topology,), body))
    output = OutputPlan.typed(plan)
    if offset:
        (view,) = output.views
        schema = output.schema.append(pa.field("_offset", pa.int64()))
        output = OutputPlan(schema, (replace(view, offset_column=len(schema) - 1),))
    worker = Worker(plan, output)
    component = plan.component("lines")
    driver = component.instance()
    driver._start(plan.conf_of(component), plan.context_of("lines", component.tasks[0], "driver"))
    ((name, (start, end)),) = driver.snapshot({}, {}).heads.items()
    rows = [tuple(row.values()) for batch in worker.run("lines", name, start, end) for row in batch.to_pylist()]
    report = worker.report()["components"]["lines"]
    worker.stop()
    return rows, report


class PassBolt(Bolt):
    outputs = ["line string"]

    def process(self, tup):
        self.emit(tup.values)


def test_what_leaves_the_topology_is_read_by_columns(tmp_path):
    rows, report = through_worker({"lines": made(tmp_path / "a", "lines")})
    assert rows == [("one",), ("two é",), ("",), ("four",)]
    assert (report["emitted"], report["executed"]) == (4, 1)


def test_a_bolt_gets_tuples_with_offsets(tmp_path):
    lines = made(tmp_path / "a", "lines")
    rows, report = through_worker({"lines": lines, "passed": PassBolt.spec(inputs=[lines])})
    assert [row[-1] for row in rows] == ["one", "two é", "", "four"]
    assert report["executed"] >= 4


class PassBatch(ArrowBolt):
    outputs = ["line string"]

    def process_batch(self, batch):
        self.emit_batch(batch)


def test_a_bolt_of_batches_gets_columns(tmp_path):
    lines = made(tmp_path / "a", "lines")
    rows, report = through_worker({"lines": lines, "passed": PassBatch.spec(inputs=[lines])})
    assert rows == [("one",), ("two é",), ("",), ("four",)]
    assert (report["emitted"], report["executed"], report["acked"]) == (4, 1, 1)


def test_an_output_with_offsets_has_those_of_the_lines(tmp_path):
    rows, _ = through_worker({"lines": made(tmp_path / "a", "lines")}, offset=True)
    assert rows == [("one", 0), ("two é", 5), ("", 12), ("four", 13)]


def test_a_spout_that_sees_each_line_still_does(tmp_path):
    class Upper(FilesSpout):
        def emit(self, values, *rest, **more):
            return super().emit([values[0].upper()], *rest, **more)

    rows, _ = through_worker({"lines": made(tmp_path / "a", "lines", cls=Upper)})
    assert rows == [("ONE",), ("TWO É",), ("",), ("FOUR",)]


BAD = {"lines": b"\xff", "csv": b"9,x,,,,,", "ndjson": b'{"n": "x"}'}


@formats
def test_malformed_lines_among_columns_are_dead_letters(tmp_path, format):
    good, _, _ = USUAL[format]
    config = {"files.malformed": "dead-letter", "files.encoding.errors": "strict", "topology.dead.letter": "stream"}
    data = good + (BAD[format] + b"\n") * 250 + good.split(b"\n", 1)[1]
    rows, report = through_worker({"lines": made(tmp_path / "a", format, data, **config)})
    letters = [row for row in rows if any(isinstance(value, str) and "malformed line" in value for value in row)]
    assert (len(letters), report["dead_letters"]) == (250, 250)
    assert f"at byte {len(good)}: " in str(letters[0])
    assert len(rows) - 250 == report["emitted"] - 250 >= 3


@formats
def test_a_malformed_line_among_columns_fails_the_task(tmp_path, format):
    good, _, _ = USUAL[format]
    data = good + BAD[format] + b"\n"
    with pytest.raises(TupleFailed) as failed:
        through_worker({"lines": made(tmp_path / "a", format, data, **{"files.encoding.errors": "strict"})})
    assert f"a' at byte {len(good)}: " in str(failed.value)
