"""A topology as a format of its own: registered by value, so that classes of a notebook or script go along."""

import json
import re
import sys
from typing import TYPE_CHECKING, Any

from pystorm_source.api.topology import Topology
from pystorm_source.environment import ensure_worker_python
from pystorm_source.errors import OptionError, TopologyError
from pystorm_source.plan import Plan, compile_plan, load_topology
from pystorm_source.source.data_source import PystormDataSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

PREFIX = "pystorm_"


def register(spark: "SparkSession", topology: type[Topology] | str, name: str | None = None) -> str:
    """Makes ``topology`` a format of this session and returns its name, for ``spark.readStream.format(name)``.

    ``topology``: the class, or ``package.module:Class``. ``name``: by default the lower-cased name of the class behind
    ``pystorm_``. Registering again, as a notebook cell that is run again does, replaces the former; running queries
    keep theirs. Classes of ``__main__`` travel by value, others by reference: their module must be importable where
    Spark's Python runs.

    Raises TopologyError, OptionError.
    """
    cls = load_topology(topology) if isinstance(topology, str) else topology
    plan = compile_plan(cls, any_environment=True)  # the reader's options choose
    _refuse_tables_of_main(plan)
    name = f"{PREFIX}{cls.__name__.lower()}" if name is None else name
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z]\w*", name):
        raise OptionError(f"the name of a format is a letter and then letters, digits and underscores. Given: {name!r}")
    _use_this_python(spark)
    spark.dataSource.register(_source_of(plan, name))
    return name


def read_stream(
    spark: "SparkSession", topology: type[Topology] | str, *, schema: "StructType | str | None" = None, **options: Any
) -> "DataFrame":
    """Registers ``topology`` and gives its streaming DataFrame.

    ``options``: those of the source, as keywords; dotted ones by ``**{"topology.debug": True}``. A dict or list is
    passed as JSON, None is left out. ``schema``: where the topology declares no types, or others are wanted.
    """
    return _loaded(spark.readStream, register(spark, topology), schema, options)


def read(
    spark: "SparkSession", topology: type[Topology] | str, *, schema: "StructType | str | None" = None, **options: Any
) -> "DataFrame":
    """``read_stream`` as a batch: what is there now, once."""
    return _loaded(spark.read, register(spark, topology), schema, options)


def _loaded(reader: Any, name: str, schema: "StructType | str | None", options: dict[str, Any]) -> "DataFrame":
    reader = reader.format(name)
    if schema is not None:
        reader = reader.schema(schema)
    for key, value in options.items():
        if value is not None:
            reader = reader.option(key, json.dumps(value) if isinstance(value, (dict, list)) else value)
    return reader.load()


def _refuse_tables_of_main(plan: Plan) -> None:
    # Workaround: cloudpickle (3.1) loses the fields of a msgspec.Struct that it has to take along by value.
    for component in plan.components:
        table = getattr(component.cls, "Options", None)
        if table is not None and table.__module__ == "__main__":
            raise TopologyError(
                f"the options table of {component.name!r} is defined in a notebook or script and cannot travel to "
                "Spark's processes: put it into a module that they can import, or read plain keys from `conf` and set "
                f"them by config={{...}}. Given: {table.__qualname__}"
            )


def _source_of(plan: Plan, name: str) -> type[PystormDataSource]:
    # Not importable by its name, hence pickled by value, and the plan with it.
    return type(
        f"PystormDataSource_{name}", (PystormDataSource,), {"format_name": name, "plan": plan, "__module__": __name__}
    )


def _use_this_python(spark: "SparkSession") -> None:
    """Where nobody chose a Python and all runs on this machine, the session runs this one instead of ``python3`` of
    PATH."""
    if "PYSPARK_PYTHON" not in ensure_worker_python():
        return
    try:
        context = spark.sparkContext
    except Exception:  # Spark Connect has none; the server chooses
        return
    if (context.master or "").startswith("local") and context.pythonExec == "python3":
        context.pythonExec = sys.executable
