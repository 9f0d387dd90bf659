"""The rows of ``run_topology(T, rows=...)``, which an Input gets in a test."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import pyarrow as pa

from pystorm_source.api.input import Input
from pystorm_source.errors import ArgumentError, SchemaError, given, said
from pystorm_source.plan.inputs import input_of
from pystorm_source.plan.plan import ComponentPlan, Plan
from pystorm_source.types.arrow import field_type


def with_rows(plan: Plan, rows: Any) -> Plan:
    """Returns the plan with an Input that reads ``rows``. Raises ArgumentError if only one of the two exists."""
    component = input_of(plan)
    if component is None and rows is None:
        return plan
    if component is None:
        raise ArgumentError(
            f"`rows` are those of an Input, and the topology has none: leave them out. Given: {plan.name!r}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    if rows is None:
        raise ArgumentError(
            f"{plan.name!r} begins with an Input: run_topology(Topology, rows=[...]) says which rows it gets, as "
            "lists, dicts or a pyarrow.RecordBatch. Given: rows=None",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    return with_rows_of(plan, {component.name: rows})


def with_rows_of(plan: Plan, rows: Mapping[str, Any]) -> Plan:
    """Returns the plan with Inputs that read these rows, by name. Raises ArgumentError for rows of another form."""
    components = []
    for each in plan.components:
        if each.name in rows:
            batch = _batch_of(each, rows[each.name])
            each = replace(each, cls=type(each.cls.__name__, (_GivenRows, each.cls), {"batch": batch}))
        components.append(each)
    return replace(plan, components=tuple(components))


class _Slice:
    """A feed of one batch."""

    def __init__(self, batch: pa.RecordBatch):
        self._batches = [batch]

    def take(self) -> pa.RecordBatch | None:
        return self._batches.pop() if self._batches else None


class _GivenRows(Input):
    batch: ClassVar[pa.RecordBatch]

    def partitions(self) -> list[str]:
        return ["rows"]

    def latest(self, partition: str) -> int:
        return max(1, int(self.batch.num_rows))  # bolts run even without rows, as in an empty partition

    def open(self, partition: str, start: int, end: int) -> None:
        super().open(partition, start, end)
        self._pystorm_feed = _Slice(self.batch.slice(start, end - start))


def _batch_of(component: ComponentPlan, rows: Any) -> pa.RecordBatch:
    stream = component.stream("default")
    values = _columns(stream.fields, rows)
    arrays = []
    for name, ddl, column in zip(stream.fields, stream.types, values, strict=True):
        wanted = None if ddl is None else field_type(ddl, f"field {name!r} of {component.name}")
        try:
            arrays.append(pa.array(column, wanted))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SchemaError(
                f"the values of `rows` do not fit field {name!r} of input {component.name!r} ({said(error)}). "
                f"Given: {given(column)}",
                code="PYSTORM_SCHEMA_MISMATCH",
            ) from None
    return pa.RecordBatch.from_arrays(arrays, names=list(stream.fields))


def _columns(names: tuple[str, ...], rows: Any) -> list[list[Any]]:
    if isinstance(rows, (pa.RecordBatch, pa.Table)):
        rows = rows.to_pylist()
    rows = list(rows) if isinstance(rows, Iterable) else [rows]
    for row in rows:
        fits = set(names) <= set(row) if isinstance(row, Mapping) else _has_width(row, len(names))
        if not fits:
            raise ArgumentError(
                f"a row is a list or tuple with a value for each of {list(names)}, or a dict with these keys. "
                f"Given: {given(row)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )
    return [[row[name] if isinstance(row, Mapping) else row[i] for row in rows] for i, name in enumerate(names)]


def _has_width(row: Any, width: int) -> bool:
    return isinstance(row, (list, tuple)) and len(row) == width
