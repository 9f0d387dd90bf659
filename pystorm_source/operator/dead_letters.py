"""Dead letters as a DataFrame, which any table takes, and rows for an Input that are made from them again.

::

    folder ──► dead_letters ──► a table ──► where(...) ──► redrive_rows ──► apply, or a sink
"""

import functools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StringType, StructField, StructType

from cython_core.arrow.value_converter import converter
from pystorm_source.api.stream import DEAD_LETTER, Stream
from pystorm_source.api.topology import Topology
from pystorm_source.errors import ArgumentTypeError, OptionError, SchemaError, given
from pystorm_source.errors.door import door
from pystorm_source.formats.dead_letter_lines import letter_values
from pystorm_source.formats.lines import SHOWN, Malformed
from pystorm_source.operator.apply import with_input
from pystorm_source.spark.border import spark_border
from pystorm_source.spark.ddl import parse_type
from pystorm_source.spark.dead_letter_file import OF_LINES
from pystorm_source.spark.input_columns import declared_schema, places_of
from pystorm_source.spark.versions import map_in_arrow, quoted, schema_of, with_schema
from pystorm_source.spark.worker_python import use_this_python
from pystorm_source.types.arrow import field_type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = ("component", "query", "batch", "partition", "offset", "time")
"""The columns that identify a dead letter in an error."""


@door
def dead_letters(spark: "SparkSession", path: str | os.PathLike[str], *, stream: bool = False) -> "DataFrame":
    """Returns the dead letters of a folder, for SQL and for tables: what ``topology.dead.letter.path`` has written.

    Columns: component string, reason string, attempts int, partition string, offset long, values string (a JSON array),
    time timestamp, and query string, batch long, which with partition and offset identify the row. Hidden files, which
    tasks still write, are not read.

    Args:
        spark (SparkSession): the session.
        path (str | os.PathLike): the folder, or a glob.
        stream (bool): whether it is a stream, which reads each file once. Defaults to False: the files that exist now.

    Returns:
        DataFrame: a row for each dead letter. A line that is not JSON of these types is an error when it is read.

    Raises:
        ArgumentTypeError: no session, or a path of another type.
        OptionError: there is no such folder: the first dead letter makes it.

    Example:
        >>> from pathlib import Path
        >>> from pystorm_source import dead_letters
        >>> _ = Path("dead.jsonl").write_text(
        ...     '{"component": "call", "reason": "503", "attempts": 4, "values": "[7, \\\\"hat\\\\"]"}' + chr(10)
        ... )
        >>> dead_letters(spark, Path("dead.jsonl").absolute()).where("reason LIKE '%503%'").first()["values"]
        '[7, "hat"]'
    """
    if not hasattr(spark, "readStream"):
        raise ArgumentTypeError(
            f"the session comes first: dead_letters(spark, '/data/dead'). Given: dead_letters({given(spark)}, "
            f"{given(path)})",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(f"path is that of a folder. Given: {given(path)}", code="PYSTORM_INVALID_ARGUMENT")
    reader: Any = spark.readStream if stream else spark.read
    try:
        frame: DataFrame = reader.schema(_schema()).option("mode", "FAILFAST").json(os.fspath(path))
        schema_of(frame)  # Spark Connect asks for the folder with the first question only
    except Exception as error:
        if "PATH_NOT_FOUND" not in str(error):
            raise
        raise OptionError(
            "there is no such folder of dead letters: the first one makes it. Create it to begin before, or name that "
            f"of topology.dead.letter.path. Given: {os.fspath(path)!r}",
            code="PYSTORM_INVALID_OPTION",
        ) from None
    return frame


@door
def redrive_rows(letters: "DataFrame", topology: type[Topology] | str) -> "DataFrame":
    """Returns the rows that a topology's ``Input`` takes, made from dead letters' values: for ``apply`` and for sinks.

    A dead letter has the tuple's values by position. They become fields of exactly the declared types, like in
    ``DeadLetterSpout``. The other columns follow, for ``keep`` and ``key`` of ``apply``; a field of the same name
    replaces one. To choose dead letters, filter them first, by ``letters.where(...)``.

    Args:
        letters (DataFrame): the dead letters, streaming or batch: from ``dead_letters``, a table, or a stream
            ``__dead_letter``. It needs the column values.
        topology (type[Topology] | str): the class, or "package.module:Class"; it begins with an ``Input``.

    Returns:
        DataFrame: a row for each dead letter. If a dead letter's values differ from the fields in number or type,
        reading it raises a SchemaError that names it.

    Raises:
        ArgumentTypeError: ``letters`` is no DataFrame.
        SchemaError: it has no column values, or the ``Input`` leaves a type open.
        TopologyError: the topology cannot run as it is declared, or does not begin with one ``Input``.

    Example:
        >>> from pystorm_source import Input, Topology, redrive_rows
        >>> class Orders(Topology):
        ...     orders = Input.spec(["id long", "item string"])
        >>> letters = spark.createDataFrame([("call", '[7, "hat"]')], "component string, values string")
        >>> redrive_rows(letters, Orders).select("id", "item", "component").collect()
        [Row(id=7, item='hat', component='call')]
    """
    if not hasattr(letters, "mapInArrow"):
        raise ArgumentTypeError(
            f"the letters come first: redrive_rows(letters, Words). Given: redrive_rows({given(letters)}, "
            f"{given(topology)})",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    plan, rows_of = with_input(topology)
    declared = declared_schema(rows_of, "values of dead letters are JSON, which has fewer types than Spark")
    known = schema_of(letters)
    selected = letters
    if known is None:  # a query function of a pipeline
        known = _schema()
        selected = with_schema(letters.select(*map(quoted, known.names)), known)
    taken = {name.lower() for name in declared.names}
    kept = [place for place, name in enumerate(known.names) if name.lower() not in taken]
    fields = _Fields(plan.name, rows_of.name, rows_of.stream("default"), _place_of_values(known), tuple(kept))
    use_this_python(letters.sparkSession)
    schema = StructType([*declared, *(known[place] for place in kept)])
    return map_in_arrow(selected, functools.partial(_rows, fields), schema)


def _schema() -> StructType:
    """The schema of the lines in a folder."""
    fields = [*zip(DEAD_LETTER.fields, DEAD_LETTER.types, strict=True), *OF_LINES]
    return StructType([StructField(name, parse_type(str(ddl), f"field {name!r}")[0]) for name, ddl in fields])


def _place_of_values(known: StructType) -> int:
    places = places_of("values", known.names)
    if len(places) != 1 or not isinstance(known[places[0]].dataType, StringType):
        raise SchemaError(
            "dead letters have a column 'values', string, a JSON array: read them by dead_letters(spark, path), or "
            f"from a table that has it as they have. Given: {known.simpleString()}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )
    return places[0]


@dataclass(frozen=True)
class _Fields:
    """What travels into each task. ``declared``: by the Input. ``values``, ``kept``: places in their columns."""

    topology: str
    input: str
    declared: Stream
    values: int
    kept: tuple[int, ...]


def _rows(fields: _Fields, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Task. The dead letters' batches, with the Input's fields in front."""
    with spark_border():
        names, ddls = fields.declared.fields, fields.declared.types
        values_of = letter_values(names, ddls)
        types = [
            field_type(str(ddl), f"field {name!r} of {fields.input}") for name, ddl in zip(names, ddls, strict=True)
        ]
        plain = [converter(type) for type in types]
        for batch in batches:
            rows = list(_values(fields, batch, values_of))
            made = [pa.array([plain[place](row[place]) for row in rows], type) for place, type in enumerate(types)]
            kept = batch.select(list(fields.kept))
            yield pa.RecordBatch.from_arrays([*made, *kept.columns], names=[*names, *kept.schema.names])


def _values(
    fields: _Fields, batch: pa.RecordBatch, values_of: Callable[[str], tuple[Any, ...]]
) -> Iterator[tuple[Any, ...]]:
    for number, values in enumerate(batch.column(fields.values).to_pylist()):
        try:
            if values is None:
                raise Malformed("it has no values")
            yield values_of(values)
        except Malformed as error:
            raise _misfit(fields, batch.slice(number, 1).to_pylist()[0], values, error) from None


def _misfit(fields: _Fields, letter: dict[str, Any], values: str | None, error: Malformed) -> SchemaError:
    known = {name.lower(): value for name, value in letter.items()}
    about = ", ".join(f"{name} {known[name]!s}" for name in NAME if known.get(name) is not None)
    declared = ", ".join(
        f"{name} {ddl}" for name, ddl in zip(fields.declared.fields, fields.declared.types, strict=True)
    )
    return SchemaError(
        f"the dead letter of {about or 'no known place'} is no row of input {fields.input!r} of {fields.topology!r}, "
        f"which takes {declared}: {error}. Leave it out by letters.where(...), or declare the fields as the tuple had "
        f"them. Given: {values if values is None else values[:SHOWN]!r}",
        code="PYSTORM_MALFORMED_RECORD",
    )
