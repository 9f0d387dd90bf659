"""A text → how often it has each word → Parquet: as one batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.harness.text import Text, written
from benchmarks.jobs.kafka_loads import rows_of
from benchmarks.jobs.measuring import Job, Load, Loads
from benchmarks.jobs.side import AT_LEAST_ONCE, BYTEWAXES, EXACTLY_ONCE, NONE, PATHWAYS, PYFLINK, SPARK, STORMS, Side

BYTES = {"few": 2_000_000, "part": 40_000_000, "all": 400_000_000}
QUICK_BYTES = {"few": 10_000, "part": 100_000, "all": 100_000}


def _check(text: Text, out: Path) -> None:
    rows = rows_of(out, ["word", "n"])
    found = dict(zip(rows["word"].to_pylist(), rows["n"].to_pylist(), strict=True))
    if found != text.total:
        raise RuntimeError(f"{len(found)} words with other counts than the text's {len(text.total)}")


@contextmanager
def _loads(folder: Path, quick: bool) -> Iterator[Loads]:
    made = {}
    for name, size in (QUICK_BYTES if quick else BYTES).items():
        (folder / name).mkdir()
        text = written(folder / name, size)
        options = {"text": str(folder / name)}
        made[name] = Load(sum(text.total.values()), lambda _, options=options: options, partial(_check, text))  # type: ignore[misc]
    yield Loads(**made)


WORDS = Job(
    "words",
    (
        Side("pystorm", "pystorm", SPARK, EXACTLY_ONCE),
        Side("spark", "spark", SPARK, EXACTLY_ONCE),
        Side("flink", "flink", PYFLINK, EXACTLY_ONCE, {"mode": "process"}),
        Side("flink-thread", "flink", PYFLINK, EXACTLY_ONCE, {"mode": "thread"}),
        Side("pathway", "pathway", PATHWAYS, NONE),
        Side("bytewax", "bytewax", BYTEWAXES, NONE),
        Side("storm", "storm", STORMS, AT_LEAST_ONCE),
    ),
    _loads,
    asked=0.8,
    asked_of_all=False,
)
