"""The task's function without Spark: iterators of record batches in, rows out."""

import threading
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

from pystorm_source.operator import apply as door
from pystorm_source.operator.task import task_function
from pystorm_source.spark.ddl import parse_type
from pystorm_source.spark.versions import arrow_schema


def function_of(topology, schema="id: long, text: string", keep=(), key=(), counted=False, **options):
    """What Spark calls in a task, as apply() makes it for a DataFrame of that schema."""
    given, _ = parse_type(f"struct<{schema}>", "the DataFrame")
    columns, operator, rows = door.operator_of(given, topology, door.option_texts(options, {}), keep, key)
    if counted:
        operator = replace(operator, counted=arrow_schema(rows))
    function = task_function(operator)
    names = [column.strip("`") for column in columns]
    return lambda batches: function(batch.select(names) for batch in batches)


def batches(count: int, rows: int = 1_000, read: list | None = None) -> Iterator[pa.RecordBatch]:
    """``count`` batches of ids, in order. ``read``: gets the number of each as it is read."""
    for i in range(count):
        if read is not None:
            read.append(i)
        yield pa.RecordBatch.from_arrays([pa.array(range(i * rows, (i + 1) * rows), pa.int64())], names=["id"])


def rows_of(batches) -> list[tuple]:
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def reading_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "pystorm-read-ahead"]


schedulers = pytest.mark.parametrize("scheduler", ["inline", "threads"])
