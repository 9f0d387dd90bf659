"""Loads that lie in topics of Kafka, and the rows that come out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import csv

from benchmarks.harness.topics import fill
from benchmarks.jobs.measuring import Load, Loads
from testbed.kafka_broker import kafka_cluster

ROWS = {"few": 20_000, "part": 400_000, "all": 2_000_000}
QUICK_ROWS = {"few": 100, "part": 1_000, "all": 2_000}
PARTITIONS = 2
STEP = 500_000
"""Records of a micro-batch. Fewer: more of the time is Spark's, for planning and committing. More: fewer batches to
measure."""


@contextmanager
def kafka_loads(
    folder: Path,
    rows: Mapping[str, int],
    value_of: Callable[[int], bytes],
    check_of: Callable[[int], Callable[[Path], None]],
) -> Iterator[Loads]:
    """``rows``: of each load; ``value_of``: number → record; ``check_of``: number of records → check of what comes of
    them."""
    with kafka_cluster(folder) as cluster:
        made = {}
        for topic, records in rows.items():
            fill(cluster, topic, records, value_of, PARTITIONS)
            options = {"servers": cluster.bootstrap, "topic": topic, "step": STEP}
            made[topic] = Load(records, lambda _, options=options: options, check_of(records))  # type: ignore[misc]
        yield Loads(**made)


def rows_of(out: Path, columns: Sequence[str]) -> pa.Table:
    """These columns of all Parquet files below a folder, whatever their names, that are committed; or of its CSV."""
    if (out / "rows.csv").exists():
        return csv.read_csv(out / "rows.csv").select(list(columns))
    files = [path for path in out.rglob("*") if path.is_file() and _is_committed(path)]
    return ds.dataset(files, format="parquet").to_table(columns=list(columns))


def _is_committed(path: Path) -> bool:
    hidden = any(part.startswith(".") or part == "_delta_log" for part in path.parts)
    with path.open("rb") as file:
        return not hidden and file.read(4) == b"PAR1"  # Flink's files have no suffix
