"""The DataFrame between two stages: each row goes to the task, or to the tasks, that its groupings name."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.types import StructField, StructType

from pystorm_source.plan.stages import Entry, Stage, StreamOf
from pystorm_source.spark.crossing_rows import NUMBER, OF_THE_SHUFFLE, CrossingRows
from pystorm_source.spark.versions import arrow_schema, quoted
from pystorm_source.stages.entry_feeds import EntryColumns
from pystorm_source.stages.salts import salts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

TO, AT, _COPY = OF_THE_SHUFFLE


@dataclass(frozen=True)
class Crossing:
    """``rows``: what leaves one stage; ``leaving``: the streams of the topology that these are, in their order.
    ``stage``: the next one. ``partitions``: how many tasks that has, unless all its groupings are global. ``have_met``:
    whether the streams come out of the same tasks."""

    rows: CrossingRows
    leaving: tuple[StreamOf, ...]
    stage: Stage
    partitions: int
    have_met: bool = False

    @property
    def stays(self) -> bool:
        """Whether no row needs another task."""
        return self.have_met and self.stage.stays

    @property
    def tasks(self) -> int:
        """How many tasks the next stage has."""
        return 1 if all(entry.placing == "global" for entry in self.stage.entries) else self.partitions

    def shuffled(self, df: "DataFrame") -> "DataFrame":
        """The rows as tasks of the next stage get them. Raises SchemaError for a key that Spark cannot hash."""
        targets = [self._targets(number) for number in range(len(self.leaving))]
        only = targets[0][0][1] if len(targets) == 1 and len(targets[0]) == 1 else None
        if only is not None and only.placing != "all":
            selected = df.select(*map(_column, self.rows.names(0)))
            if self.stays:
                return selected
            if only.placing == "global":
                return selected.repartition(1)
            return selected.repartition(self.tasks, *map(_column, self._hashed(0, only)))
        placed = self.placed(df)
        return (placed if self.stays else placed.repartition(self.tasks, _column(AT))).drop(AT)

    def entries(self) -> tuple[EntryColumns, ...]:
        """Where the next stage's Inputs find their columns in ``shuffled``."""
        several = len(self.stage.entries) > 1
        kept = self._kept()
        place_of = {column.name: place + several for place, column in enumerate(kept)}
        types = {column.name: field.type for column, field in zip(kept, arrow_schema(StructType(kept)), strict=True)}
        found = []
        for entry in self.stage.entries:
            names = self.columns_of(entry.name)
            fields = self.stage.plan.component(entry.name).stream("default").fields
            found.append(
                EntryColumns(
                    entry.name,
                    tuple(place_of[name] for name in names),
                    tuple((field, types[name]) for field, name in zip(fields, names, strict=True)),
                )
            )
        return tuple(found)

    def arrow_schema(self) -> pa.Schema:
        """The Arrow schema of ``placed`` without AT, and of ``shuffled``."""
        several = len(self.stage.entries) > 1
        kept = arrow_schema(StructType(self._kept()))
        return pa.schema([pa.field(TO, pa.int32()), *kept]) if several else kept

    def columns_of(self, entry: str) -> list[str]:
        """The names, in ``placed``, of the columns of an entry."""
        (origin,) = (each.origin for each in self.stage.entries if each.name == entry)
        return self.rows.names(self.leaving.index(origin))

    def _kept(self) -> list[StructField]:
        return [column for column in self.rows.columns if column.name != NUMBER]

    def _targets(self, number: int) -> list[tuple[int, Entry]]:
        origin = self.leaving[number]
        return [(i, entry) for i, entry in enumerate(self.stage.entries) if entry.origin == origin]

    def placed(self, df: "DataFrame") -> "DataFrame":
        """Copies each row for each entry, and for each task of an ALL grouping; column AT decides which task gets the
        copy."""
        from pyspark.sql import functions as F

        targets = [self._targets(number) for number in range(len(self.leaving))]
        copies: Any = None
        for number, of_stream in enumerate(targets):
            here = F.concat(*(self._copies(number, place, entry) for place, entry in of_stream))
            if not self.rows.has_number:
                copies = here
                break
            is_of = F.col(NUMBER) == F.lit(number)
            copies = F.when(is_of, here) if copies is None else copies.when(is_of, here)
        kept = [_column(column.name) for column in self._kept()]
        to = [F.col(f"{_COPY}.to").alias(TO)] if len(self.stage.entries) > 1 else []
        placed = df.select(F.explode(copies).alias(_COPY), *kept)
        return placed.select(*to, F.col(f"{_COPY}.at").alias(AT), *kept)

    def _copies(self, number: int, place: int, entry: Entry) -> "Column":
        """An array of structs: the entry, and what the shuffle hashes."""
        from pyspark.sql import functions as F

        def one(at: "Column") -> "Column":
            return F.struct(F.lit(place).alias("to"), at.alias("at"))

        if entry.placing == "all":
            return F.array(*(one(F.lit(salt)) for salt in salts(self.tasks)))
        if entry.placing == "global":
            return F.array(one(F.lit(0)))
        hashed = self._hashed(number, entry)
        return F.array(one(F.hash(*map(_column, hashed)) if hashed else F.lit(0)))

    def _hashed(self, number: int, entry: Entry) -> list[str]:
        """The columns that place a row: the key of a fields grouping, otherwise all columns that Spark can hash."""
        names = self.rows.names(number)
        if entry.placing == "fields":
            return [names[position] for position in entry.positions]
        types = {column.name: column.dataType.simpleString() for column in self.rows.columns}
        return [name for name in names if "map<" not in types[name]]


def _column(name: str) -> "Column":
    from pyspark.sql import functions as F

    return F.col(quoted(name))
