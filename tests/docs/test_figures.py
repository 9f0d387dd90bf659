"""The figures of README.md and docs/PERFORMANCE.md are those of benchmarks/results; the picture is one of `draw`'s."""

import html
import json
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from typer.testing import CliRunner

from pystorm_source.cli.main import app
from tests.docs.pages import ROOT

PAGES = [ROOT / "README.md", ROOT / "docs/PERFORMANCE.md"]
MARKED = re.compile(r"<!-- figures -->\n(.*?)<!-- /figures -->", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)( million)?")


class Cell(NamedTuple):
    """Where the number of a cell comes from: a record, its field, and what is printed of it."""

    bench: str
    case: str
    field: str = "value"
    of: Callable[[Any], float] = float


def per_second(nanoseconds: float) -> float:
    return 1e9 / nanoseconds


def millis(seconds: float) -> float:
    return 1e3 * seconds


def peer(bench: str, case: str) -> list[Cell]:
    return [Cell(bench, case), Cell(bench, case, "peer_value"), Cell(bench, case, "ratio")]


def acked(case: str) -> list[Cell]:
    return [Cell("acker", case, "ratio"), Cell("acker", f"{case}-no-ids", "ratio"), Cell("latency", case, of=millis)]


def curve(case: str, of: Callable[[float], float] = float) -> list[Cell]:
    """Its first value and its last, its slope, the slope that is asked for."""
    ends = [Cell("scale", case, "values", lambda values, at=at: of(values[at])) for at in (0, -1)]
    return [*ends, Cell("scale", case), Cell("scale", case, "asked")]


NULL, ID_NULL = "constant spout → null bolt", "constant spout → id bolt → null bolt"
WORDS = "sentence → split → count"
ADAPTIVE = ("adaptive", "fixed", "unbounded")

# By the first cell of the table's head, then by the first cell of a row: the numbers of the other cells.
FIGURES: dict[str, dict[str, list[Cell]]] = {
    "per second, on 2 shared cores": {
        "rows through Spark, spout → output": peer("through_spark", "spout"),
        "rows through Spark, spout → bolt → output": peer("through_spark", "spout-id"),
        "Kafka records into a bolt": peer("kafka", "tuple / spark-plain"),
        "word count without acking, one thread": peer("topologies", "word-count"),
        "word count with acking, one thread": peer("topologies", "word-count-acked"),
    },
    "rows per second": {
        "a bare Python data source that yields tuples": [Cell("through_spark", "bare-tuples")],
        "`PartitionedSpout`, tuple by tuple → output": [
            Cell("through_spark", "spout"),
            Cell("through_spark", "spout", "ratio"),
        ],
        "the same through one bolt": [Cell("through_spark", "spout-id"), Cell("through_spark", "spout-id", "ratio")],
        "a bare Python data source that yields Arrow batches": [Cell("through_spark", "bare-batches")],
        "`PartitionedSpout` with `next_batch` → output": [
            Cell("through_spark", "batch-spout"),
            Cell("through_spark", "batch-spout", "ratio"),
        ],
    },
    "records per second": {
        "`KafkaBatchSpout`, all rows to Spark": peer("kafka", "arrow / spark-arrow"),
        "`KafkaSpout`, tuples into a null bolt": peer("kafka", "tuple / spark-plain"),
        "`KafkaBatchSpout`, JSON to five columns, to Spark": peer("kafka", "json / spark-json"),
        "`KafkaBatchSpout`, all rows to Spark, again": peer("kafka", "arrow / bare"),
        "`KafkaBatchSpout` into a null `ArrowBolt`": peer("kafka", "arrow-bolt / bare"),
        "`KafkaBatchSpout` into a null bolt of rows": peer("kafka", "arrow-null / bare"),
    },
    "rows of a DataFrame, per second": {
        "a bolt of rows": peer("operator", "row / udf"),
        "a bolt of rows, again": peer("operator", "row / arrow-udf"),
        "an `ArrowBolt`": peer("operator", "arrow / by-hand"),
        "an `AsyncBolt`, answers behind 50 ms, 1 % failing once": peer("operator", "async / udf"),
        "the same `AsyncBolt`, again": peer("operator", "async / by-hand"),
        "answers with a long tail, at most 5 s": peer("operator", "tail / udf"),
        "answers with a long tail, again": peer("operator", "tail / by-hand"),
    },
    "rows in columns, per second": {
        "Arrow spout → filter → output, through Spark": peer("columns", "filter / bare"),
        "the same, again": peer("columns", "filter / rate"),
        "batches of 200 before a bolt of rows": peer("columns", "batches-200"),
        "batches of 800 before it": peer("columns", "batches-800"),
        "batches of 10,000 before it": peer("columns", "batches-10000"),
        "batches of 200 before `process_many`": peer("columns", "columns-200"),
        "batches of 10,000 before `process_many`": peer("columns", "columns-10000"),
        "`FilesSpout`, lines → output": peer("files", "lines"),
        "`FilesSpout`, CSV → output": peer("files", "csv"),
        "`FilesSpout`, NDJSON of 100 MB a file → five columns, through Spark": peer("files", "ndjson-spark"),
    },
    "words of 1 GB of text, bytes per second": {
        "`FilesSpout` → `ArrowBolt` → `CombinerBolt` → `groupBy`": peer("word_count", "arrow / spark"),
        "the same, again": peer("word_count", "arrow / bytewax"),
        "the same, once more": peer("word_count", "arrow / rows"),
    },
    "compiled components": {
        NULL: peer("compiled", "null"),
        ID_NULL: peer("compiled", "id-null"),
        WORDS: peer("compiled", "word-count"),
        "the first one with acking": peer("compiled", "null-acked"),
        "the second one with acking": peer("compiled", "id-null-acked"),
        "the third one with acking": peer("compiled", "word-count-acked"),
        "the first one in batches of 1,000": peer("compiled", "null-batches"),
        "the second one in batches": peer("compiled", "id-null-batches"),
        "the third one in batches": peer("compiled", "word-count-batches"),
        "the third one in batches, with acking": peer("compiled", "word-count-acked-batches"),
    },
    "tuples per second": {
        NULL: [Cell("core", "const-null"), Cell("core", "const-null", "floor_ns", per_second)],
        ID_NULL: [Cell("core", "const-id-null"), Cell("core", "const-id-null", "floor_ns", per_second)],
        f"{WORDS} (fields grouping)": [
            Cell("core", "word-count"),
            Cell("core", "word-count", "floor_ns", per_second),
        ],
    },
    "the same run's peers": {
        "the id bolt in pystorm 3.1.4, fed through its pipe at its best": peer("core", "id-through-pipe")[:2],
        "bytewax 0.21.1 maps items one at a time": peer("core", "map")[:2],
        "bytewax 0.21.1 maps batches that are ready": peer("core", "map-ready-batches")[:2],
        "bytewax 0.21.1 counts words": peer("core", "word-count-peer")[:2],
    },
    "without acking": {
        NULL: peer("topologies", "null"),
        ID_NULL: peer("topologies", "id-null"),
        WORDS: peer("topologies", "word-count"),
    },
    "both cores": {
        f"{name}{interpreter}": peer(bench, f"{case}-machine")
        for bench, interpreter in (("two_processes", ""), ("two_processes_profiled", ", Debian's Python"))
        for name, case in (
            (ID_NULL, "id-null"),
            (WORDS, "word-count"),
            (f"{WORDS} by column calls", "word-count-columns"),
            (f"{WORDS} with acking", "word-count-acked"),
        )
    },
    "with acking, Storm with one acker": {
        NULL: peer("topologies", "null-acked"),
        ID_NULL: peer("topologies", "id-null-acked"),
        WORDS: peer("topologies", "word-count-acked"),
    },
    "with acking": {NULL: acked("null"), ID_NULL: acked("id-null"), WORDS: acked("word-count")},
    "costs as sizes grow": {
        "planning of a micro-batch, by partitions, 10 to 100,000": curve("partitions / planning", millis),
        "reports of all its ranges, by partitions, 10 to 100,000": curve("partitions / reports", millis),
        "memory of both on the driver, by partitions, 10 to 100,000": curve("partitions / memory"),
        "the offset in Spark's log, by partitions, 10 to 100,000": curve("partitions / offset"),
        "a look of `FilesSpout` that finds 10 new files, by known files, 10 to 50,000": curve("files / cpu", millis),
        "a tuple in each bolt of a chain, by bolts, 1 to 100": curve("chain / cpu"),
        "a tuple in each of its subscribers, by subscribers, 1 to 64": curve("fan-out / cpu"),
        "a tuple in each component, by tasks, shuffle, 1 to 64": curve("par-shuffle / cpu"),
        "the same, fields grouping, 1 to 64": curve("par-fields / cpu"),
        "a tuple, by open trees, 100 to 1,000,000": curve("open-trees / cpu"),
        "a request of an `AsyncBolt`, by requests in flight, 10 to 50,000": curve("requests / cpu"),
        "a look of `ObjectsSpout` that finds 10 new objects, by known objects, 10 to 1,000,000": curve(
            "objects / cpu", millis
        ),
        "a micro-batch, by those before it in the same process, 10 to 10,000": curve("micro-batches / seconds", millis),
        "memory of that process, by micro-batches, 10 to 10,000": curve("micro-batches / memory"),
    },
    "": {
        "95th percentile of micro-batches, in targets": [Cell("overload", f"varying-p95-{how}") for how in ADAPTIVE],
        "share of the capacity that is used": [Cell("overload", f"varying-goodput-{how}") for how in ADAPTIVE],
        "growth of a task's memory in 50 million tuples, in percent": [Cell("memory", "spout-id-output-slow-consumer")],
        "requests per second of an `AsyncBolt`, and of aiohttp by hand": peer("async", "aiohttp")[:2],
    },
}


def records(bench: str) -> dict[str, dict[str, Any]]:
    lines = (ROOT / "benchmarks/results" / f"{bench}.jsonl").read_text().splitlines()
    return {record["case"]: record for record in map(json.loads, filter(None, lines)) if "case" in record}


def rows(page: Path) -> list[tuple[str, str, list[str]]]:
    """Of each row between the marks: the first cell of its table's head, its own first cell, the other cells."""
    found = []
    for block in MARKED.findall(page.read_text()):
        head = None
        for line in block.splitlines():
            if not line.startswith("|"):
                head = None
                continue
            first, *rest = [cell.strip() for cell in line.strip("|").split("|")]
            if head is None:
                head = first
            elif set(first) - {"-"}:
                found.append((head, first, rest))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_figures_are_those_of_the_records(page):
    """Each number of each row, as far as it is printed."""
    shown = rows(page)
    assert shown
    for head, first, cells in shown:
        assert first in FIGURES.get(head, {}), f"{page.name}: nothing says where the row {first!r} comes from"
        expected = FIGURES[head][first]
        numbers = [match for cell in cells if (match := NUMBER.search(cell))]
        assert len(numbers) == len(expected), f"{page.name}: {first}: {cells}"
        for number, cell in zip(numbers, expected, strict=True):
            record = records(cell.bench)[cell.case]
            exact = cell.of(record[cell.field]) / (1e6 if number[2] else 1)
            digits = len(number[1].partition(".")[2])
            given = float(number[1].replace(",", ""))
            assert abs(given - exact) <= 0.5001 * 10**-digits, f"{page.name}: {first}: {given}, measured {exact}"


def test_the_readme_has_few():
    (block,) = MARKED.findall((ROOT / "README.md").read_text())
    assert len(block.splitlines()) <= 12


def test_the_picture_of_the_readme_is_drawn_by_the_command(tmp_path):
    name, picture = "examples.sentences:Sentences", "docs/pictures/sentences.svg"
    assert f"]({picture})" in (ROOT / "README.md").read_text()
    drawn = tmp_path / "drawn.svg"
    assert CliRunner().invoke(app, ["draw", name, "--output", str(drawn)]).exit_code == 0
    remedy = f"run: pystorm-source draw {name} --output {picture}"
    assert drawn.read_text() == (ROOT / picture).read_text(), remedy


def test_the_curves_are_drawn_from_the_records(tmp_path):
    drawing = runpy.run_path(str(ROOT / "docs/pictures/draw_scale.py"))
    drawing["drawn"](tmp_path / "drawn.svg")
    remedy = "run: python docs/pictures/draw_scale.py"
    assert (tmp_path / "drawn.svg").read_text() == (ROOT / "docs/pictures/scale.svg").read_text(), remedy


def test_the_recording_is_of_a_demo_that_proved_all():
    """`python docs/pictures/record_demo.py` makes it anew."""
    picture = (ROOT / "docs/pictures/demo.svg").read_text()
    assert "](docs/pictures/demo.svg)" in (ROOT / "README.md").read_text()
    text = html.unescape(re.sub(r"<[^>]+>", "\n", picture)).replace("\xa0", " ")
    assert len(re.findall(r"^proven$", text, re.MULTILINE)) == 3 and "NOT PROVEN" not in text
    assert str(ROOT) not in text


def test_a_recording_leaves_out_what_repeats():
    shown = runpy.run_path(str(ROOT / "docs/pictures/record_demo.py"))["shown"]
    run = ["topology", "Spark starts", *(f"    {n:2}   1.0 s   1.5 s" for n in range(9)), "-> slower", "     9   2.0 s"]
    assert [line.split()[0] for line in shown("\n".join([*run, f". {ROOT}/.venv/bin/activate"]))] == (
        ["Spark", "0", "1", "…", "8", "->", "9", "."]
    )
