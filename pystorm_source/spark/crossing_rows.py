"""The rows of streams that cross a cut between two stages: one column for each field, and which stream a row is of."""

from dataclasses import dataclass
from typing import Self

from pyspark.sql.types import DataType, IntegerType, StructField, StructType

from pystorm_source.plan import Plan
from pystorm_source.spark.ddl import parse_type
from pystorm_source.spark.versions import arrow_schema
from pystorm_source.worker.output import OutputPlan, ViewPlan

NUMBER = "_pystorm_stream"
"""The column with the number of the row's stream, added only if there are several."""
OF_THE_SHUFFLE = ("_pystorm_entry", "_pystorm_at", "_pystorm_copy")
"""Columns that rows have only during the shuffle: the entry that a row goes to, what decides on its task, and both of
each copy of a row."""


@dataclass(frozen=True)
class CrossingRows:
    """``streams``: component and stream of the stage's plan, in the order of their numbers. ``places``: of each, the
    columns of its fields. Fields of one name and type share a column: a row has the values of its stream, and null in
    the others."""

    streams: tuple[tuple[str, str], ...]
    columns: tuple[StructField, ...]
    places: tuple[tuple[int, ...], ...]
    batch_rows: int

    @classmethod
    def of(cls, plan: Plan, batch_rows: int) -> Self:
        """The rows that leave a stage. ``batch_rows``: option output.batch.rows. Raises SchemaError for an unknown
        type."""
        columns: list[StructField] = []
        known: dict[tuple[str, DataType], int] = {}
        places = []
        streams = plan.leaving or ()
        for component, name in streams:
            stream = plan.component(component).stream(name)
            places.append(
                tuple(
                    _place(columns, known, field, ddl or "", f"field {field!r} of {component}.{name}")
                    for field, ddl in zip(stream.fields, stream.types, strict=True)
                )
            )
        if len(streams) > 1:
            shared = [sum(place in of_one for of_one in places) for place in range(len(columns))]
            columns = [
                column if count == len(streams) else StructField(column.name, column.dataType, True)
                for column, count in zip(columns, shared, strict=True)
            ]
            columns.append(StructField(NUMBER, IntegerType(), False))
        return cls(streams, tuple(columns), tuple(places), batch_rows)

    @property
    def has_number(self) -> bool:
        """Whether a column says which stream a row is of."""
        return len(self.streams) > 1

    def names(self, number: int) -> list[str]:
        """The columns of that stream, in the order of its fields."""
        return [self.columns[place].name for place in self.places[number]]

    def schema(self) -> StructType:
        """The schema of the DataFrame between the two stages."""
        return StructType(list(self.columns))

    def output(self, schema: StructType | None = None) -> OutputPlan:
        """How a task makes them. ``schema``: no other than theirs."""
        number_column = len(self.columns) - 1 if self.has_number else -1
        views = tuple(
            ViewPlan(component, stream, self.places[number], number_column=number_column, number=number)
            for number, (component, stream) in enumerate(self.streams)
        )
        return OutputPlan(schema=arrow_schema(self.schema()), views=views, batch_rows=self.batch_rows)


def _place(columns: list[StructField], known: dict[tuple[str, DataType], int], field: str, ddl: str, where: str) -> int:
    """The column of a field; a new one if none has its name and type."""
    data_type, nullable = parse_type(ddl, where)
    if (field, data_type) not in known:
        taken = {column.name.lower() for column in columns} | {NUMBER, *OF_THE_SHUFFLE}
        name = field if field.lower() not in taken else f"{field}_{len(columns)}"
        while name.lower() in taken:
            name += "_"
        known[field, data_type] = len(columns)
        columns.append(StructField(name, data_type, nullable))
    place = known[field, data_type]
    if nullable and not columns[place].nullable:
        columns[place] = StructField(columns[place].name, data_type, True)
    return place
