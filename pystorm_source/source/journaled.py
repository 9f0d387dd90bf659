"""A plan with a journal around its spouts without offsets."""

import base64
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from pystorm_source.api.stream import Stream
from pystorm_source.journal.options import JournalOptions
from pystorm_source.journal.rows import UNTYPED
from pystorm_source.journal.spout import JournaledSpout
from pystorm_source.options import SourceOptions
from pystorm_source.plan import ComponentPlan, Plan
from pystorm_source.spark.ddl import parse_type
from pystorm_source.spark.versions import arrow_schema

PERMITS = 100_000
"""Tuples that a micro-batch admits from a spout without offsets if ``maxOffsetsPerTrigger`` does not say. Too large:
only its target ends a micro-batch. Too small: a quick spout waits for the next one."""


def journaled(plan: Plan, options: SourceOptions, journal: JournalOptions) -> Plan:
    """``plan`` with a ``JournaledSpout`` around each spout without offsets.

    Raises SchemaError for unknown types.
    """
    components = tuple(
        component if not component.is_spout or component.is_partitioned else _wrapped(component, options, journal)
        for component in plan.components
    )
    return replace(plan, components=components)


def _wrapped(component: ComponentPlan, options: SourceOptions, journal: JournalOptions) -> ComponentPlan:
    bounds = [most for most in (options.max_offsets_per_trigger, options.max_offsets_per_partition) if most is not None]
    passed: dict[str, Any] = {
        "journal.poll.millis": options.poll_millis,
        "journal.direct": [stream.name for stream in component.streams if stream.direct],
        "journal.permits": min(bounds, default=PERMITS),
        "journal.schemas": {
            stream.name: base64.b64encode(_schema(component, stream).serialize()).decode()
            for stream in component.streams
        },
    }
    if journal.readers is not None:
        passed["journal.readers"] = journal.readers
    config = tuple(sorted({**dict(component.config), **passed}.items()))
    return replace(component, wrapper=JournaledSpout, config=config)


def _schema(component: ComponentPlan, stream: Stream) -> pa.Schema:
    fields = []
    for name, ddl in zip(stream.fields, stream.types, strict=True):
        if ddl is None:
            fields.append(pa.field(name, pa.binary(), metadata={UNTYPED: b"msgpack"}))
        else:
            kind = parse_type(ddl, f"field {name!r} of {component.name}.{stream.name}")
            fields += arrow_schema(StructType([StructField(name, *kind)]))
    return pa.schema(fields)
