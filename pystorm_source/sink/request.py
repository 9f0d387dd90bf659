"""What a sink is asked for: the topology under its options, checked as ``apply`` checks it."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from pystorm_source.api.input import Input
from pystorm_source.channel.leases.checks import check_limits
from pystorm_source.errors import OptionError, SchemaError, TopologyError
from pystorm_source.options import SourceOptions, parse
from pystorm_source.plan import Plan, compile_plan, load_topology
from pystorm_source.plan.inputs import input_of
from pystorm_source.spark.dead_letter_file import NO_LETTERS, LetterFolder
from pystorm_source.spark.input_columns import columns_of, places_of, refuse_sources_own, types_of
from pystorm_source.spark.interned import interned, pickled
from pystorm_source.spark.plan_options import config_of, in_its_environment, letters_on, with_options
from pystorm_source.spark.rows import Rows
from pystorm_source.spark.versions import arrow_schema
from pystorm_source.worker.output import OutputPlan

OF_SINKS = (
    "topology",
    "config",
    "progress.path",
    "topology.dead.letter.path",
    "topology.dead.letter.group",
    "use",
    "key",
)
"""The keys of ``SourceOptions`` that mean something without offsets, admission and rows that leave."""
SPARKS_OWN = ("checkpointlocation", "queryname")
"""Keys of ``writeStream`` that Spark hands on to the sink, in lower case."""
DEAD_LETTER, DEAD_LETTER_PATH = "topology.dead.letter", "topology.dead.letter.path"


@dataclass(frozen=True)
class SinkRequest:
    """``input``: the component that is the Input. ``output``: the rows that leave the worker: only dead letters, and
    only if there is a folder for them. ``used``: differs for each write. ``records``: option progress.path;
    ``letters``: the folder of dead letters; both empty if not given. ``use``, ``key``: options of these names."""

    plan: Plan
    output: OutputPlan
    input: str
    used: str
    records: str = ""
    letters: LetterFolder = NO_LETTERS
    use: str = ""
    key: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Mapping[str, str], source: str = "pystorm", plan: Plan | None = None) -> "SinkRequest | None":
        """Reads options as Spark gives them; None if the topology is a source's, and this may be a read.

        Raises OptionError, TopologyError or SchemaError with key, value and remedy.
        """
        keys = {key.lower(): key for key in given}
        if plan is None:
            name = given[keys["topology"]] if "topology" in keys else ""
            topology = load_topology(name) if name else None
            if topology is not None and any(_is_input(spec.component_cls) for spec in topology.specs):
                plan = compile_plan(topology, any_environment=True)
            elif topology is not None and "checkpointlocation" in keys:
                raise no_input(topology.__name__)
        elif "topology" in keys and input_of(plan) is not None:
            raise OptionError(
                f"format {source!r} was registered with its topology: leave option 'topology' out, or use format "
                f"'pystorm'. Given: {given[keys['topology']]!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        rows_of = input_of(plan) if plan is not None else None
        if plan is None or rows_of is None:
            return None
        asked = {key: value for key, value in given.items() if key.lower() not in SPARKS_OWN}
        refuse_sources_own(asked, OF_SINKS, "a sink")
        found = parse(SourceOptions, asked)
        asked, letters = letters_on(asked, found), LetterFolder.of(found)
        plan, _ = in_its_environment(with_options(plan, config_of(found.config), asked, found))
        check_limits(plan.options, "a sink")
        return cls(
            plan=plan,
            output=_output(plan, rows_of.name, letters.path),
            input=rows_of.name,
            used=uuid.uuid4().hex,
            records=found.progress_path,
            letters=letters,
            use=found.use,
            key=_names_in(found.key),
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return interned, (pickled(_Fields(tuple(getattr(self, field.name) for field in fields(self)))),)

    def columns(self, schema: StructType) -> "InputColumns":
        """The Input's columns in rows of that schema. Raises SchemaError."""
        rows_of = self.plan.component(self.input)
        names = columns_of(schema, rows_of, "the write") + [_key_column(name, schema.names) for name in self.key]
        place_of = {name: place for place, name in reversed([*enumerate(schema.names)])}
        places = tuple(place_of[name] for name in names)
        given = arrow_schema(StructType([schema[place] for place in places]))
        return InputColumns(places, types_of(rows_of), tuple(given.types))


@dataclass(frozen=True)
class InputColumns:
    """``places``: of the Input's columns in Spark's rows, then of the key's. ``types``: names of its fields, and their
    types, None for any. ``given``: Spark's types of all these columns."""

    places: tuple[int, ...]
    types: tuple[tuple[str, pa.DataType | None], ...]
    given: tuple[pa.DataType, ...]

    @property
    def has_key(self) -> bool:
        """Whether columns are the key of an input row."""
        return len(self.places) > len(self.types)


class _Fields:
    """A request in transit, like a read's."""

    def __init__(self, values: tuple[Any, ...]):
        self._values = values

    def __reduce__(self) -> tuple[Any, ...]:
        return SinkRequest, self._values


def _names_in(text: str) -> tuple[str, ...]:
    """The columns of option key. Raises OptionError."""
    if not text.lstrip().startswith("["):
        names: Any = [part.strip() for part in text.split(",")] if text.strip() else []
    else:
        try:
            names = json.loads(text)
        except ValueError:
            names = None
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise OptionError(
            f"option 'key' names columns: 'region,order', or '[\"region\", \"order\"]'. Given: {text!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return tuple(dict.fromkeys(names))


def _key_column(name: str, have: list[str]) -> str:
    places = places_of(name, have)
    if len(places) != 1:
        what = "has no such column" if not places else "has it more than once"
        raise SchemaError(
            f"option 'key' names column {name!r}, and the DataFrame {what}. Given: {have!r}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )
    return have[places[0]]


def no_input(topology: str) -> TopologyError:
    """The error for writing to a topology without an Input."""
    return TopologyError(
        "a sink gives a topology the rows of a DataFrame: begin it with rows = Input.spec(['id long', ...]) in place "
        "of its spouts; or read it: spark.readStream.format('pystorm'), without checkpointLocation on the reader. "
        f"Given: {topology!r}",
        code="PYSTORM_INVALID_TOPOLOGY",
    )


def _is_input(component: object) -> bool:
    return isinstance(component, type) and issubclass(component, Input)


def _output(plan: Plan, rows_of: str, letters: str) -> OutputPlan:
    """What leaves the worker. Raises TopologyError if rows would be left, OptionError if dead letters would."""
    open_streams = [(component.name, stream.name) for component, stream in plan.open_streams]
    rows = [f"{component}.{stream}" for component, stream in open_streams if stream != "__dead_letter"]
    if rows:
        raise TopologyError(
            "rows would leave this topology, and a sink has no place for them: let a bolt take them, take `outputs` "
            "out of the last bolt, or use pystorm_source.apply(df, Topology), which returns them as a DataFrame. "
            f"Given: {', '.join(rows)}",
            code="PYSTORM_INVALID_TOPOLOGY",
        )
    if not open_streams and letters:
        raise OptionError(
            f"a bolt of {plan.name!r} takes the dead letters: leave {DEAD_LETTER_PATH} out, or that input of the bolt. "
            f"Given: {letters!r}",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    if not open_streams:
        return OutputPlan.typed(plan)
    if not letters:
        raise OptionError(
            f"dead letters would have no reader: name a folder that driver and executors share in {DEAD_LETTER_PATH}, "
            f"let a bolt subscribe to them, or set {DEAD_LETTER}=drop. Given: {DEAD_LETTER}='stream'",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    letter_rows = Rows(plan, parse(SourceOptions, {"stream": f"{rows_of}.__dead_letter"}))
    return letter_rows.output(letter_rows.schema())
