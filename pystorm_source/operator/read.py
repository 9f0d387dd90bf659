"""Reads a topology: its sources, and behind each cut of ``scope="cluster"`` an operator."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pystorm_source.api.topology import Topology
from pystorm_source.errors.door import door
from pystorm_source.operator.cluster import Cluster, scope_of
from pystorm_source.options.hidden import meant
from pystorm_source.plan.inputs import refuse_input
from pystorm_source.source.register import (
    check_order,
    checked,
    is_ours_to_check,
    loaded,
    planned,
    registered,
)
from pystorm_source.source.request import ReadRequest
from pystorm_source.spark.plan_options import option_texts
from pystorm_source.spark.versions import check_source_name, named_reader

if TYPE_CHECKING:
    from typing import Unpack

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pystorm_source.options.typed import ReadOptions


@door
def read_stream(
    spark: "SparkSession",
    topology: type[Topology] | str,
    *,
    schema: "StructType | str | None" = None,
    scope: Literal["task", "cluster"] = "task",
    name: str | None = None,
    options: "ReadOptions | Mapping[str, Any] | None" = None,
    **keywords: "Unpack[ReadOptions]",
) -> "DataFrame":
    """Registers ``topology`` and returns its streaming DataFrame.

    Errors are raised here, before Spark is asked: Spark would raise them when the query starts.

    Args:
        spark (SparkSession): the session.
        topology (type[Topology] | str): the class, or "package.module:Class".
        schema (StructType | str): columns, if the topology declares no types or others are wanted. Defaults to what
            the open stream declares.
        scope (str): "task": the topology runs in each Spark task, and groupings hold inside of it. "cluster": it is
            cut where a grouping must hold across the cluster (fields, global, ALL, and where several spouts meet), and
            Spark shuffles the rows between two stages: docs/STAGES.md. Defaults to 'task'.
        name (str): the source's name in the checkpoint. Spark 4.2 and later find its offsets by this name when sources
            of the query are added, removed or change places: ``DataStreamReader.name``, with
            ``spark.sql.streaming.queryEvolution.enableSourceEvolution``. Defaults to None: its place in the query.
        options (ReadOptions | Mapping[str, Any]): options of the source (docs/OPTIONS.md), also with dots in their
            names (``{"topology.scheduler": "threads"}``) and open keys such as ``kafka.*``. A dict or list is passed as
            JSON, None is left out. Defaults to no options.
        **keywords (Unpack[ReadOptions]): more options; editors complete them.

    Returns:
        DataFrame: a streaming DataFrame.

    Raises:
        ArgumentTypeError: the topology is given before the session.
        ArgumentError: another scope, or a name that Spark does not take: before 4.2, any name.
        OptionError: an unknown option or a wrong value.
        TopologyError: the topology cannot run as it is declared, or cannot be cut.
        SchemaError: the schema does not fit the rows of the topology.

    Example:
        >>> from pystorm_source import read_stream
        >>> from pystorm_source.spouts import MemorySpout
        >>> class Words(Topology):
        ...     words = MemorySpout.spec(fields=["word string"], rows=[["cow"], ["dog"]])
        >>> stream = read_stream(spark, Words).writeStream.format("memory").queryName("streamed_words")
        >>> _ = stream.trigger(availableNow=True).start().awaitTermination()
        >>> spark.table("streamed_words").count()
        2
    """
    check_order(spark, topology, "read_stream")
    check_source_name(name)

    def reader() -> Any:
        return named_reader(spark.readStream, name)

    return _read(spark, topology, reader, ReadRequest.check_streaming, scope, schema, keywords, options)


@door
def read(
    spark: "SparkSession",
    topology: type[Topology] | str,
    *,
    schema: "StructType | str | None" = None,
    scope: Literal["task", "cluster"] = "task",
    options: "ReadOptions | Mapping[str, Any] | None" = None,
    **keywords: "Unpack[ReadOptions]",
) -> "DataFrame":
    """Registers ``topology`` and returns a batch DataFrame of what is there now.

    Args:
        spark (SparkSession): the session.
        topology (type[Topology] | str): the class, or "package.module:Class".
        schema (StructType | str): as in ``read_stream``. Defaults to what the open stream declares.
        scope (str): as in ``read_stream``. Defaults to 'task'.
        options (ReadOptions | Mapping[str, Any]): as in ``read_stream``. Defaults to no options.
        **keywords (Unpack[ReadOptions]): as in ``read_stream``.

    Returns:
        DataFrame: a batch DataFrame. Each action reads again.

    Raises:
        ArgumentTypeError: the topology is given before the session.
        ArgumentError: another scope.
        OptionError: an unknown option or a wrong value.
        TopologyError: the topology cannot run as it is declared, or cannot be cut.
        SchemaError: the schema does not fit the rows of the topology.

    Example:
        >>> from pystorm_source import read
        >>> from pystorm_source.spouts import MemorySpout
        >>> class Words(Topology):
        ...     words = MemorySpout.spec(fields=["word string"], rows=[["cow"], ["dog"]])
        >>> sorted(row.word for row in read(spark, Words).collect())
        ['cow', 'dog']
    """
    check_order(spark, topology, "read")
    return _read(spark, topology, lambda: spark.read, ReadRequest.check_batch, scope, schema, keywords, options)


def _read(
    spark: "SparkSession",
    topology: type[Topology] | str,
    reader: Callable[[], Any],
    check: Callable[[ReadRequest], None],
    scope: str,
    schema: "StructType | str | None",
    keywords: Mapping[str, Any],
    options: Mapping[str, Any] | None,
) -> "DataFrame":
    """``reader``: the session's. ``check``: refuses options that it does not take."""
    plan, name = planned(topology)
    refuse_input(plan)
    asked = option_texts(keywords, options or {})
    texts = meant(asked)
    cluster = Cluster.of(plan, texts, schema) if scope_of(scope) == "cluster" else None
    if cluster is not None and cluster.is_cut:
        plan, name, texts, schema = cluster.sources, f"{name}_sources", cluster.options_of_sources(texts), None
    if is_ours_to_check(spark, texts):
        check(checked(spark, plan, name, texts, schema))
    name = registered(spark, plan, name)  # Order: errors of pickling come before anything is asked of the session
    df = loaded(reader().format(name), schema, texts, asked)
    return df if cluster is None else cluster.behind_sources(df)
