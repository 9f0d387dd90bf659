"""Registers a topology as a format, by value, so that classes of a notebook or script go along."""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from pystorm_source.api.topology import Topology
from pystorm_source.errors import ArgumentTypeError, OptionError, given
from pystorm_source.errors.door import door
from pystorm_source.options.hidden import hidden
from pystorm_source.options.presets import preset_file
from pystorm_source.plan import Plan, compile_plan, load_topology
from pystorm_source.sink.request import SinkRequest
from pystorm_source.source.data_source import PystormDataSource
from pystorm_source.source.request import ReadRequest
from pystorm_source.spark.ddl import columns_of_text
from pystorm_source.spark.interned import interned, pickled_with, refuse_tables_of_main
from pystorm_source.spark.worker_python import use_this_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

PREFIX = "pystorm_"


@door
def register(spark: "SparkSession", topology: type[Topology] | str, name: str | None = None) -> str:
    """Makes ``topology`` a format of this session, for ``spark.readStream.format(name)``; if it begins with an
    ``Input``, for ``df.writeStream.format(name)``.

    Registering again, for example by rerunning a notebook cell, replaces the format; running queries keep theirs.

    Trap: classes of ``__main__`` travel by value, others by reference: their module must be importable where Spark's
    Python runs.

    Args:
        spark (SparkSession): the session.
        topology (type[Topology] | str): the class, or "package.module:Class".
        name (str): name of the format: letters, digits and underscores. Defaults to ``pystorm_`` and the lower-cased
            name of the class.

    Returns:
        str: the name of the format.

    Raises:
        ArgumentTypeError: the topology is given before the session.
        TopologyError: the topology cannot run as it is declared.
        OptionError: a wrong option in its config, or a wrong name.

    Example:
        >>> from pystorm_source import register
        >>> from pystorm_source.spouts import MemorySpout
        >>> class Numbers(Topology):
        ...     numbers = MemorySpout.spec(fields=["n long"], rows=[[1], [2]])
        >>> register(spark, Numbers)
        'pystorm_numbers'
        >>> spark.read.format("pystorm_numbers").load().count()
        2
    """
    check_order(spark, topology, "register")
    return registered(spark, *planned(topology, name))


def check_order(spark: Any, topology: Any, function: str) -> None:
    """Raises ArgumentTypeError for arguments in the wrong order, or no session."""
    if spark is None or isinstance(spark, (str, Topology)) or (isinstance(spark, type) and issubclass(spark, Topology)):
        raise ArgumentTypeError(
            f"the session comes first: {function}(spark, {getattr(spark, '__name__', 'Words')}). "
            f"Given: {function}({given(spark)}, {given(topology)})",
            code="PYSTORM_INVALID_ARGUMENT",
        )


def planned(topology: type[Topology] | str, name: str | None = None) -> tuple[Plan, str]:
    """The plan, and the name of its format."""
    cls = load_topology(topology) if isinstance(topology, str) else topology
    plan = compile_plan(cls, any_environment=True)  # the reader's options choose
    refuse_tables_of_main(plan)
    name = f"{PREFIX}{cls.__name__.lower()}" if name is None else name
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name):
        raise OptionError(
            f"the name of a format is a letter and then letters, digits and underscores. Given: {name!r}",
            code="PYSTORM_INVALID_OPTION",
        )
    return plan, name


def registered(spark: "SparkSession", plan: Plan, name: str) -> str:
    """Makes the plan a format of that name. Returns the name."""
    source = _source_of(plan, name)
    use_this_python(spark)
    spark.dataSource.register(source)
    return name


def is_ours_to_check(spark: "SparkSession", texts: Mapping[str, str]) -> bool:
    """Whether the files that options name are on this machine: under Spark Connect the driver is elsewhere."""
    config = texts.get("config", "{")
    return hasattr(spark, "_jsc") or config.lstrip().startswith("{") or preset_file(config) is not None


def checked(
    spark: "SparkSession", plan: Plan, name: str, texts: Mapping[str, str], schema: "StructType | str | None"
) -> ReadRequest:
    """The request that Spark will make. No component is made."""
    request = ReadRequest.of(texts, name, plan)
    if hasattr(spark, "_jsc"):  # otherwise the driver, and its files, are elsewhere
        request.check_here()
    if schema is None:
        request.rows.schema()
    elif (columns := columns_of_text(schema)) is not None:
        request.rows.output(columns)
    return request


def loaded(
    reader: Any, schema: "StructType | str | None", texts: Mapping[str, str], asked: Iterable[str]
) -> "DataFrame":
    """The DataFrame of ``spark.read.format(...)`` or ``spark.readStream.format(...)`` under these options. ``asked``:
    the keys as the user gave them."""
    return (reader if schema is None else reader.schema(schema)).options(**hidden(texts, asked)).load()


def _source_of(plan: Plan, name: str) -> type[PystormDataSource]:
    # Not importable by its name, hence pickled by value, and the plan with it.
    return type(
        f"PystormDataSource_{name}",
        (_Registered,),
        {"format_name": name, "plan": _TravellingPlan(pickled_with(plan, plan)), "__module__": __name__},
    )


class _TravellingPlan:
    """A class attribute that is the plan: unpickled on access, so that a missing module raises our error instead of
    failing in Spark's unpickling."""

    def __init__(self, made: bytes):
        self._made = made

    def __get__(self, instance: object, owner: type) -> Plan:
        plan: Plan = interned(self._made)
        return plan


class _Registered(PystormDataSource):
    """Base of the sources of registered topologies. After ``.load()`` the request has the plan, so instances travel
    without their class's copy of it: one goes along with every task."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _arrived, (self.format_name, self.request)


def _arrived(name: str, request: ReadRequest | SinkRequest) -> PystormDataSource:
    source = object.__new__(_source_named(name))
    source.request = request
    return source


@functools.lru_cache(maxsize=32)  # it is cheap to make another one
def _source_named(name: str) -> type[PystormDataSource]:
    return type(f"PystormDataSource_{name}", (_Registered,), {"format_name": name, "__module__": __name__})
