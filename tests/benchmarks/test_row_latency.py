"""The rung ``row_latency``: since when a row can be read, and that wrong rows do not become figures."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.jobs.logs import LOGS
from benchmarks.jobs.process import Failed, Process
from benchmarks.jobs.readable import Found, Growth, found
from benchmarks.rungs.row_latency import checked


def written(path, numbers):
    pq.write_table(pa.table({"number": numbers, "cents": [10 * number for number in numbers]}), path)
    return path


def seen(out):
    return [(row.number, row.cents, row.since) for row in found(out, Growth(out / "rows.csv"))]


def test_a_file_of_parquet_is_readable_since_it_got_its_name(tmp_path):
    hidden = written(tmp_path / ".part-0.inprogress", [1, 2])
    assert seen(tmp_path) == []
    hidden.rename(tmp_path / "part-0")
    since = (tmp_path / "part-0").stat().st_ctime
    assert seen(tmp_path) == [(1, 10, since), (2, 20, since)]


def test_half_a_file_is_not_readable(tmp_path):
    path = written(tmp_path / "part-0", [1])
    os.truncate(path, path.stat().st_size - 1)
    assert seen(tmp_path) == []


def test_a_file_of_sparks_sink_is_readable_since_the_first_entry_that_names_it(tmp_path):
    log = tmp_path / "_spark_metadata"
    log.mkdir()
    entries = []
    for number in (0, 1):
        entries.append(json.dumps({"path": f"file://{written(tmp_path / f'{number}.parquet', [number])}"}))
    written(tmp_path / "other.parquet", [2])
    (log / "0").write_text("\n".join(["v1", entries[0]]))
    (log / "1.compact").write_text("\n".join(["v1", *entries]))
    (log / ".2.tmp").write_text("v1\n{")
    first, second = ((log / name).stat().st_ctime for name in ("0", "1.compact"))
    assert seen(tmp_path) == [(0, 0, first), (1, 10, second)]


def test_a_line_of_csv_is_readable_since_the_file_reaches_its_end(tmp_path):
    growth = Growth(tmp_path / "rows.csv")
    growth.look(1.0)
    for now, text in ((2.0, "cents,number\n10,1\n2"), (3.0, "0,2\n"), (4.0, "30,3")):
        with growth.path.open("a") as file:
            file.write(text)
        growth.look(now)
    assert list(found(tmp_path, growth)) == [Found(1, 10, 2.0), Found(2, 20, 3.0)]


ROWS = [Found(1, 10, 5.0), Found(2, 20, 6.0), Found(2, 20, 7.0), Found(9, 1, 4.0)]


def test_a_row_counts_since_it_can_be_read_first():
    assert checked({1: 10, 2: 20}, iter(ROWS), once=False) == {1: 5.0, 2: 6.0, 9: 4.0}


@pytest.mark.parametrize(
    ("wanted", "once", "told"),
    [({1: 10, 2: 20}, True, "1 orders came out more than once, such as 2"), ({1: 11}, False, "instead of 11 cents")],
)
def test_wrong_rows_are_no_figure(wanted, once, told):
    with pytest.raises(RuntimeError, match=told):
        checked(wanted, iter(ROWS), once)


def test_a_program_that_ends_says_why(tmp_path):
    by_hand = next(side for side in LOGS.sides if side.name == "by-hand")
    with Process(by_hand.kind, tmp_path) as process:
        process.check()
        process.start("logs_by_hand", {})
        with pytest.raises(Failed, match=r"TypeError: run\(\) missing"):
            process.does("logs_by_hand", {})
        process._process.wait()
        with pytest.raises(Failed, match=r"TypeError: run\(\) missing"):
            process.check()
