"""``files.malformed=dead-letter``: a line that its format cannot read is a row, a count or an error, never nothing."""

import base64
import gzip
import json
import logging
from typing import NamedTuple

import pytest

from pystorm_source import Bolt, Topology
from pystorm_source.errors import SchemaError
from pystorm_source.spouts import FilesSpout
from pystorm_source.testing import ManualClock, run_topology

POLICY = "topology.dead.letter"
MALFORMED = {"files.malformed": "dead-letter"}
CASES = {
    "ndjson": (["id int"], b'{"id": 1}\n{"id": "x"}\nno json\n{"id": 4}\n', {}),
    "csv": (["id int", "name string"], b'1,a\nx,b\n"open\n4,d\n', {}),
    "csv with a header": (["id int"], b"name,id\na,1\nb,x\nc\nd,4\n", {"format": "csv", "files.header": True}),
    "lines": (["line string"], b"1\n\xff2\n\xfe3\n4\n", {"files.encoding.errors": "strict"}),
}
formats = pytest.mark.parametrize("case", CASES)


class DeadLetter(NamedTuple):
    component: str
    reason: str
    attempts: int
    partition: str
    offset: int
    values: str
    time: object


def run(path, case, data=None, **options):
    fields, content, more = CASES[case]
    path.write_bytes(content if data is None else data)
    config = {"format": case, "files.finished.after": "0s", **MALFORMED, **more, **options}
    lines = FilesSpout.spec(path=path, fields=fields, config=config)
    return run_topology(type("Made", (Topology,), {"lines": lines}), clock=ManualClock(now=4e9), errors="collect")


def letters(result):
    return [DeadLetter(*row) for row in result.rows("lines", "__dead_letter")]


def bad_lines(case):
    """(offset, line) of the second and the third record."""
    lines = CASES[case][1].splitlines(keepends=True)
    first = 2 if "header" in case else 1
    at = len(b"".join(lines[:first]))
    return [(at, lines[first][:-1]), (at + len(lines[first]), lines[first + 1][:-1])]


@formats
def test_a_malformed_line_is_a_row_with_file_byte_reason_and_text(tmp_path, case):
    path = tmp_path / "a.log"
    result = run(path, case, **{POLICY: "stream"})
    assert result.errors == []
    assert [int(row[0]) for row in result.rows("lines")] == [1, 4]
    found = letters(result)
    assert [(row.component, row.attempts) for row in found] == [("lines", 0)] * 2
    assert [row.offset for row in found] == [offset for offset, _ in bad_lines(case)]
    for row, (offset, line) in zip(found, bad_lines(case), strict=True):
        assert row.reason.startswith(f"malformed line in {str(path)!r} at byte {offset}: ")
        assert "a.log" in row.partition
        (raw,) = json.loads(row.values)
        assert (base64.b64decode(raw) if case == "lines" else raw.encode()) == line
    assert (result.dead_letters["lines"], result.dropped["lines"]) == (2, 0)


@formats
def test_dropped_lines_are_counted_and_warned_of_once(tmp_path, case, caplog):
    with caplog.at_level(logging.WARNING):
        result = run(tmp_path / "a.log", case, **{POLICY: "drop"})
    assert [int(row[0]) for row in result.rows("lines")] == [1, 4]
    assert (result.errors, result.dead_letters["lines"], result.dropped["lines"]) == ([], 2, 2)
    assert caplog.text.count("topology.dead.letter is drop") == 1
    assert f"at byte {bad_lines(case)[0][0]}" in caplog.text


@formats
def test_by_default_a_dead_letter_fails_the_task_and_names_both_options(tmp_path, case):
    result = run(tmp_path / "a.log", case)
    (error,) = result.errors
    assert isinstance(error.__cause__, SchemaError)
    said = str(error)
    assert f"a.log' at byte {bad_lines(case)[0][0]}: " in said and "Given: " in said
    assert "files.malformed=skip" in said and "topology.dead.letter=stream or drop" in said
    assert (result.rows("lines"), result.dead_letters["lines"]) == ([], 1)


@pytest.mark.parametrize("malformed", ["skip", "fail"])
def test_other_policies_make_no_dead_letters(tmp_path, malformed):
    result = run(tmp_path / "a.log", "ndjson", **{POLICY: "stream", "files.malformed": malformed})
    assert (letters(result), result.dead_letters["lines"]) == ([], 0)
    assert len(result.errors) == (malformed == "fail")


def test_lines_of_a_gzip_file_are_rows_too(tmp_path):
    result = run(tmp_path / "a.log.gz", "ndjson", gzip.compress(CASES["ndjson"][1]), **{POLICY: "stream"})
    assert [json.loads(row.values) for row in letters(result)] == [['{"id": "x"}'], ["no json"]]
    assert result.rows("lines") == [(1,), (4,)]


def test_a_gzip_file_that_cannot_be_unpacked_is_no_line(tmp_path):
    """There is nothing of which a row could be made: the task fails."""
    data = gzip.compress(b'{"id": 1}\n' * 1000)
    result = run(tmp_path / "a.log.gz", "ndjson", data[:30] + data[40:], **{POLICY: "stream"})
    assert "a.log.gz" in str(result.errors[0]) and result.rows("lines") == []


def test_a_long_line_is_whole_in_the_row_and_short_in_the_reason(tmp_path):
    line = b'{"id": "' + b"x" * 100_000 + b'"}'
    (row,) = letters(run(tmp_path / "a.log", "ndjson", line + b"\n", **{POLICY: "stream"}))
    assert json.loads(row.values) == [line.decode()] and len(row.reason) < 1000
    (error,) = run(tmp_path / "a.log", "ndjson", line + b"\n").errors
    assert len(str(error)) < 2000


def test_readers_of_dead_letters_have_a_turn_after_each(tmp_path):
    """A block of nothing but malformed lines does not fill the memory with rows that wait for room."""

    class Bury(Bolt):
        outputs = ["offset long"]

        def process(self, tup):
            self.emit([tup.values.offset])

    class Seen(FilesSpout):
        at_once = most = 0

        def next_tuple(self):
            self.at_once = 0
            return super().next_tuple()

        def _bury(self, lost):
            self.at_once += 1
            Seen.most = max(Seen.most, self.at_once)
            return super()._bury(lost)

    (tmp_path / "a.log").write_bytes(b"no json\n" * 20_000)
    config = {"format": "ndjson", "files.finished.after": "0s", POLICY: "stream", **MALFORMED}
    lines = Seen.spec(path=tmp_path / "a.log", fields=["id int"], config=config)
    made = type("Made", (Topology,), {"lines": lines, "buried": Bury.spec(inputs=[lines["__dead_letter"]])})
    result = run_topology(made, clock=ManualClock(now=4e9))
    assert [offset for (offset,) in result.rows("buried")] == list(range(0, 160_000, 8))
    assert Seen.most == 1
