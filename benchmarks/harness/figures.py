"""The figures of the pages, written from the records in ``results/``: ``python -m benchmarks --report``.

A table between ``<!-- figures -->`` and ``<!-- /figures -->`` has a row in ``FIGURES``, which names the record behind
each of its numbers. A case may have several records, of runs on different days: the page has their median, and behind a
ratio the smallest and the largest. A number keeps the digits that the page shows.
"""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks/results"

PAGES = [ROOT / "README.md", ROOT / "docs/PERFORMANCE.md"]
MARKED = re.compile(r"<!-- figures -->\n(.*?)<!-- /figures -->", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])(\d+(?:,\d{3})*(?:\.\d+)?)( million)?(?: \([\d.]+ to [\d.]+\))?")


class Cell(NamedTuple):
    """Where the number of a cell comes from: the records of a case, their field, and what is printed of it."""

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


def peer_of_job(job: str, side: str) -> list[Cell]:
    """Both rates and their ratio; lines of code of both programs."""
    return [*peer("jobs", f"{job} / {side}"), *(Cell("jobs", f"{job} / {each}", "lines") for each in ("pystorm", side))]


def row_latency(side: str) -> list[Cell]:
    """Both sides' percentiles, and the ratio of the medians."""
    return [Cell("row_latency", side, field) for field in ("p50", "p99", "peer_p50", "peer_p99", "ratio")]


def curve(case: str, of: Callable[[float], float] = float) -> list[Cell]:
    """Its first value and its last, its slope, the slope that is asked for."""
    ends = [Cell("scale", case, "values", lambda values, at=at: of(values[at])) for at in (0, -1)]
    return [*ends, Cell("scale", case), Cell("scale", case, "asked")]


NULL, ID_NULL = "constant spout → null bolt", "constant spout → id bolt → null bolt"
WORDS = "sentence → split → count"
ADAPTIVE = ("adaptive", "fixed", "unbounded")

PACKAGES = {
    "Spark": "spark",
    "Spark, an Arrow UDF": "spark-udf",
    "Spark, `transformWithState`": "spark-state",
    "PyFlink": "flink",
    "PyFlink, threads": "flink-thread",
    "Pathway": "pathway",
    "Quix Streams": "quix",
    "bytewax": "bytewax",
    "Storm, Python bolts": "storm",
    "Telegraf": "telegraf",
    "syslog-ng": "syslog-ng",
    "by hand": "by-hand",
}
JOBS = {
    "orders": ("spark", "spark-udf", "flink", "flink-thread", "pathway", "quix", "bytewax"),
    "decoded": ("spark", "flink", "flink-thread", "pathway"),
    "prices": ("spark", "flink", "pathway", "by-hand"),
    "visits": ("spark", "spark-state", "flink", "flink-thread", "pathway", "bytewax"),
    "logs": ("spark", "telegraf", "syslog-ng", "by-hand"),
    "words": ("spark", "flink", "flink-thread", "pathway", "bytewax", "storm"),
}
ROW_LATENCY = {
    "Spark": "spark",
    "Pathway": "pathway",
    "PyFlink, commits each second": "flink",
    "PyFlink, each 200 ms": "flink-200ms",
    "Quix Streams, commits each second": "quix",
    "Quix Streams, each 200 ms": "quix-200ms",
    "bytewax, commits each second": "bytewax",
    "bytewax, each 200 ms": "bytewax-200ms",
}

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
        "a bare Python data source that yields tuples": [Cell("through_spark", "spout", "peer_value")],
        "`PartitionedSpout`, tuple by tuple → output": [
            Cell("through_spark", "spout"),
            Cell("through_spark", "spout", "ratio"),
        ],
        "the same through one bolt": [Cell("through_spark", "spout-id"), Cell("through_spark", "spout-id", "ratio")],
        "a bare Python data source that yields Arrow batches": [Cell("through_spark", "batch-spout", "peer_value")],
        "`PartitionedSpout` with `next_batch` → output": [
            Cell("through_spark", "batch-spout"),
            Cell("through_spark", "batch-spout", "ratio"),
        ],
    },
    "messages per second": {
        "`MqttSpout` with a journal, to Spark": peer("sources", "mqtt / bare"),
        "`MqttSpout`, again": peer("sources", "mqtt / simple"),
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
        "an `AsyncBolt`, answers after 50 ms, 1 % fail once": peer("operator", "async / udf"),
        "the same `AsyncBolt`, again": peer("operator", "async / by-hand"),
        "answers with a long tail, at most 5 s": peer("operator", "tail / udf"),
        "answers with a long tail, again": peer("operator", "tail / by-hand"),
    },
    **{
        f"{job}, per core-second": {
            package: peer_of_job(job, side) for package, side in PACKAGES.items() if side in JOBS[job]
        }
        for job in JOBS
    },
    "orders, milliseconds until a row is readable": {label: row_latency(side) for label, side in ROW_LATENCY.items()},
    "rows in columns, per second": {
        "Arrow spout → filter → output, through Spark": peer("columns", "filter / bare"),
        "the same, again": peer("columns", "filter / rate"),
        "batches of 10,000 before a bolt of rows": peer("columns", "batches-10000"),
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
        WORDS: peer("compiled", "word-count"),
        f"{WORDS} with acking": peer("compiled", "word-count-acked"),
        f"{WORDS} in batches of 1,000": peer("compiled", "word-count-batches"),
        "the same with acking": peer("compiled", "word-count-acked-batches"),
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
        "the id bolt in pystorm 3.1.4, behind a pipe that is always full": peer("core", "id-through-pipe")[:2],
        "bytewax 0.21.1 maps items one at a time": peer("core", "map")[:2],
        "bytewax 0.21.1 maps prepared batches": peer("core", "map-ready-batches")[:2],
        "bytewax 0.21.1 counts words": peer("core", "word-count-peer")[:2],
    },
    "without acking": {
        NULL: peer("topologies", "null"),
        ID_NULL: peer("topologies", "id-null"),
        WORDS: peer("topologies", "word-count"),
    },
    "both cores": {
        name: peer("two_processes", f"{case}-machine")
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
        "the offset in Spark's log, by partitions, 10 to 100,000": curve("partitions / offset"),
        "a search of `FilesSpout` that finds 10 new files, by known files, 10 to 1,000,000": curve(
            "files / cpu", millis
        ),
        "a tuple in each bolt of a chain, by bolts, 1 to 100": curve("chain / cpu"),
        "a tuple in each of its subscribers, by subscribers, 1 to 64": curve("fan-out / cpu"),
        "a tuple in each component, by tasks, shuffle, 1 to 64": curve("par-shuffle / cpu"),
        "the same, fields grouping, 1 to 64": curve("par-fields / cpu"),
        "a tuple, by open trees, 100 to 1,000,000": curve("open-trees / cpu"),
        "a request of an `AsyncBolt`, by requests in flight, 10 to 50,000": curve("requests / cpu"),
        "a search of `ObjectsSpout` that finds 10 new objects, by known objects, 10 to 1,000,000": curve(
            "objects / cpu", millis
        ),
        "a micro-batch, by earlier ones in the same process, 10 to 10,000": curve("micro-batches / seconds", millis),
        "memory of that process, by micro-batches, 10 to 10,000": curve("micro-batches / memory"),
        "a micro-batch through Spark, by earlier ones, 30 to 300": curve("micro-batches-spark / seconds", millis),
        "memory of Spark's Python processes, 30 to 300": curve("micro-batches-spark / memory"),
        "a micro-batch through Spark that touches 1,000 keys, by keys, 1,000 to 10,000,000": curve(
            "keys / seconds", millis
        ),
        "a micro-batch on a cluster of two processes, by tasks, 4 to 500": curve("tasks / seconds", millis),
    },
    "": {
        "95th percentile of micro-batch durations ÷ target": [
            Cell("overload", f"varying-p95-{how}") for how in ADAPTIVE
        ],
        "used share of the capacity": [Cell("overload", f"varying-goodput-{how}") for how in ADAPTIVE],
        "growth of a task's memory over 50 million tuples, in percent": [
            Cell("memory", "spout-id-output-slow-consumer")
        ],
        "requests per second of an `AsyncBolt`, and of aiohttp by hand": peer("async", "aiohttp")[:2],
    },
}


def report() -> list[Path]:
    """Writes the figures of all pages. Returns the pages that have changed."""
    changed = []
    for page in PAGES:
        text = page.read_text()
        written = with_figures(text)
        if written != text:
            page.write_text(written)
            changed.append(page)
    return changed


def with_figures(text: str) -> str:
    """Returns the text of a page with the figures of the records.

    Raises KeyError if a row is not in FIGURES, ValueError if it does not have the numbers that are named there.
    """
    return MARKED.sub(lambda block: _block(block[0]), text)


def _block(text: str) -> str:
    lines, head = [], None
    for line in text.split("\n"):
        if not line.startswith("|"):
            head = None
        elif head is None:
            head = _cells(line)[0]
        elif set(_cells(line)[0]) - {"-"}:
            line = _row(head, line)
        lines.append(line)
    return "\n".join(lines)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def _row(head: str, line: str) -> str:
    first, *others = _cells(line)
    try:
        sources = FIGURES[head][first]
    except KeyError:
        raise KeyError(f"nothing says where the row {first!r} of the table {head!r} comes from") from None
    numbers = sum(NUMBER.search(cell) is not None for cell in others)
    if numbers != len(sources):
        raise ValueError(f"the row {first!r} has {numbers} numbers, and FIGURES names {len(sources)}. Given: {line}")
    left = iter(sources)
    cells = [NUMBER.sub(lambda shown: _figure(shown, next(left)), cell, count=1) for cell in others]
    return "|" + "|".join(f" {cell} " if cell else " " for cell in [first, *cells]) + "|"


def _figure(shown: re.Match[str], cell: Cell) -> str:
    found = records(cell.bench, cell.case)
    seen = [cell.of(record[cell.field]) for record in found if record.get(cell.field) is not None]
    million = shown[2] or ""
    digits = len(shown[1].partition(".")[2])
    exact = cell.of(median_of(found)[cell.field]) / (1e6 if million else 1)
    ends = f" ({min(seen):.{digits}f} to {max(seen):.{digits}f})" if cell.field == "ratio" and len(seen) > 1 else ""
    return f"{exact:,.{digits}f}{million}{ends}"


def median_of(found: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the record with the median ratio, of several days' the lower one in the middle; of records without a peer
    that with the median value. All cells of a row are of this one: medians of each column would not be in the ratio
    that is printed beside them."""
    with_ratio = [record for record in found if record.get("ratio") is not None]
    in_order = sorted(with_ratio or found, key=lambda record: record["ratio" if with_ratio else "value"])
    return in_order[(len(in_order) - 1) // 2]


def records(bench: str, case: str) -> Sequence[dict[str, Any]]:
    """Returns the records of a case, the oldest first. Raises LookupError if the case has no record."""
    lines = (RESULTS / f"{bench}.jsonl").read_text().splitlines()
    found = [record for record in map(json.loads, filter(None, lines)) if record.get("case") == case]
    if not found:
        raise LookupError(f"benchmarks/results/{bench}.jsonl has no record of the case {case!r}")
    return found
