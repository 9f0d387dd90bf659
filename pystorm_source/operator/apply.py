"""The driver's side of an operator: plan, columns and schema, then Spark's ``mapInArrow``."""

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql.types import StructType

from pystorm_source.api.topology import Topology
from pystorm_source.errors import ArgumentError, ArgumentTypeError, OptionError, SchemaError, TopologyError, given
from pystorm_source.errors.door import door
from pystorm_source.operator.cluster import Cluster, first_of, scope_of, warn_once, with_plan
from pystorm_source.operator.kept_columns import Keep
from pystorm_source.operator.permits import permits_of
from pystorm_source.operator.read_counts import read_counts
from pystorm_source.operator.report_column import observed, with_column
from pystorm_source.operator.task import OperatorPlan, task_function
from pystorm_source.operator.uses import use_of
from pystorm_source.options import SourceOptions, parse
from pystorm_source.options.hidden import meant
from pystorm_source.plan import Plan, compile_plan, load_topology
from pystorm_source.plan.inputs import input_of
from pystorm_source.plan.lint import lint_operator
from pystorm_source.query.counted import note
from pystorm_source.spark.column_names import ColumnNames
from pystorm_source.spark.crossing_rows import CrossingRows
from pystorm_source.spark.dead_letter_file import LetterFolder
from pystorm_source.spark.input_columns import columns_of, declared_schema, refuse_sources_own, types_of
from pystorm_source.spark.interned import refuse_tables_of_main
from pystorm_source.spark.plan_options import config_of, in_its_environment, letters_on, option_texts, with_options
from pystorm_source.spark.rows import Rows
from pystorm_source.spark.versions import arrow_schema, is_shuffled, map_in_arrow, quoted, schema_of, with_schema
from pystorm_source.spark.worker_python import use_this_python

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation

OF_OPERATORS = (
    "config",
    "stream",
    "streams",
    "output.batch.rows",
    "topology.dead.letter.path",
    "topology.dead.letter.group",
    "use",
    "feedback.host",
    "feedback.port",
)
"""The keys of ``SourceOptions`` that mean something without offsets and admission."""


@door
def apply(
    df: "DataFrame",
    topology: type[Topology] | str,
    *,
    keep: str | Sequence[str] = (),
    key: Sequence[str] = (),
    batch_id: int | None = None,
    counts: "str | Observation" = "",
    scope: Literal["task", "cluster"] = "task",
    options: Mapping[str, Any] | None = None,
    **keywords: Any,
) -> "DataFrame":
    """Returns the rows that a topology makes from a DataFrame, streaming or batch, also inside ``foreachBatch``.

    The topology begins with an ``Input``, whose columns are taken from ``df`` by name. It runs in each task over the
    rows of that partition, with trees, retries and dead letters as in a source. Rows leave while others are read.

    Trap: a topology repeats its effects on the outside world in each action and each ``writeStream`` on the result, and
    in each task that Spark runs again. ``persist()`` the result inside ``foreachBatch`` to use it twice.

    Args:
        df (DataFrame): the rows.
        topology (type[Topology] | str): the class, or "package.module:Class".
        keep (str | list[str]): columns of ``df`` that each row repeats from its input row, in front of the topology's
            columns: names, or "*" for all whose name is not one of the topology's fields. A row that is anchored to
            several input rows, or to no input row, is then an error. Defaults to ().
        key (list[str]): columns of ``df`` whose values name a row: what ``Bolt.idempotency_key`` gives. Defaults to ():
            it gives topology, query, micro-batch, partition and number of the row.
        batch_id (int): the micro-batch number in that key, for a batch query that is repeated after a restart, such as
            inside ``foreachBatch`` over Spark Connect. If Spark gives tasks a number, that one counts.
        counts (str | Observation): the name under which Spark observes what the components do, in
            ``observedMetrics`` of each micro-batch, or an ``Observation`` in a batch query: ``counts_of`` reads it. An
            attempt that failed does not count, nor what ``limit()`` cuts off. Defaults to '': none.
        scope (str): "cluster": the topology is cut where a grouping must hold across tasks, as by ``read_stream``;
            ``keep``, ``key`` and ``counts`` need "task". Defaults to 'task': groupings hold in each Spark task.
        options (Mapping[str, Any]): options of the engine and of components (docs/OPTIONS.md), and of the source's
            ``config``, ``stream``, ``streams``, ``output.batch.rows``, ``topology.dead.letter.path``, ``use`` and, for
            rate limits, ``feedback.host`` and ``feedback.port``. Defaults to no options.
        **keywords (Any): more options, such as ``stream="geocode.found"``, or ``use="eu"``, which names this use if a
            query or a micro-batch has several of one topology, and begins the keys of its rows.

    Returns:
        DataFrame: the rows of the open stream; a streaming DataFrame if ``df`` is one.

    Raises:
        ArgumentTypeError: ``df`` is no DataFrame, ``keep`` or ``key`` no names, or ``counts`` no name.
        TopologyError: the topology cannot run as it is declared, or does not begin with one ``Input``.
        ArgumentError: another scope, or an argument that it does not take; or a row would have the idempotency key of
            another row, which ``key`` or ``use`` prevents.
        OptionError: an unknown option, one for sources only, a wrong value, or rate limits that cannot hold here.
        WorldError: this process must serve the permits of rate limits, and cannot listen.
        SchemaError: ``df`` lacks a column or has it in another type, ``keep`` names a field of the topology's rows, or
            the open stream declares no types.

    Example:
        >>> from pystorm_source import Bolt, Input, Topology, apply
        >>> class Double(Bolt):
        ...     outputs = ["n long", "twice long"]
        ...     def process(self, tup):
        ...         self.emit([tup.values.n, 2 * tup.values.n])
        >>> class Doubles(Topology):
        ...     rows = Input.spec(["n long"])
        ...     double = Double.spec(inputs=[rows])
        >>> numbers = spark.range(3).withColumnRenamed("id", "n")
        >>> sorted(row.twice for row in apply(numbers, Doubles).collect())
        [0, 2, 4]
        >>> apply(numbers.selectExpr("n", "n % 2 = 0 AS even"), Doubles, keep="*").columns
        ['even', 'n', 'twice']
    """
    if not hasattr(df, "mapInArrow"):
        raise ArgumentTypeError(
            f"the DataFrame comes first: apply(df, Words). Given: apply({given(df)}, {given(topology)})",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    if not isinstance(counts, str) and type(counts).__name__ != "Observation":
        raise ArgumentTypeError(
            f"counts is a name, or a pyspark.sql.Observation. Given: {given(counts)}", code="PYSTORM_INVALID_ARGUMENT"
        )
    known = schema_of(df)
    asked = meant(option_texts(keywords, options or {}))
    if scope_of(scope) == "cluster":
        _refuse_of_task(keep=keep, key=key, counts=counts)
        return _across_the_cluster(df, known, topology, asked, batch_id)
    columns, operator, schema = operator_of(known, topology, asked, keep, key, batch_id)
    use = use_of(df, operator)
    operator = use.operator
    if counts:
        operator, schema = replace(operator, counted=arrow_schema(schema)), with_column(schema)
        if isinstance(counts, str):
            note(counts, partial(read_counts, operator.plan, operator.output))
    warn_once(lint_operator(operator.plan, is_shuffled(df), bool(key)))
    operator = replace(operator, permits_from=permits_of(operator.plan, df.sparkSession, parse(SourceOptions, asked)))
    function = task_function(operator)
    use_this_python(df.sparkSession)
    told = declared_schema(operator.plan.component(operator.input)) if known is None else known
    fields = {quoted(field.name): field for field in told}
    selected = with_schema(df.select(*columns), StructType([fields[column] for column in columns]))
    rows = map_in_arrow(selected, function, schema)
    return use.marked(observed(rows, counts) if counts else rows)


def _refuse_of_task(**given_here: Any) -> None:
    for argument, value in given_here.items():
        if value:
            raise ArgumentError(
                f"{argument} follows a row from the DataFrame to the result, and behind a shuffle nothing does: leave "
                f"it out with scope='cluster'. Given: {argument}={given(value)}",
                code="PYSTORM_INVALID_ARGUMENT",
            )


def _across_the_cluster(
    df: "DataFrame",
    known: StructType | None,
    topology: type[Topology] | str,
    asked: Mapping[str, str],
    batch_id: int | None,
) -> "DataFrame":
    refuse_sources_own(asked, OF_OPERATORS, "an operator")
    plan, rows_of = with_input(topology)
    if known is None:
        raise SchemaError(
            "in a query function of a pipeline Spark tells no columns, which scope='cluster' needs between its stages: "
            "use scope='task' behind a table that is partitioned as you need it. Given: scope='cluster'",
            code="PYSTORM_SCHEMA_MISMATCH",
        )
    cluster = Cluster.of(plan, asked, batch_id=batch_id)
    if not cluster.is_cut:
        return apply(df, topology, batch_id=batch_id, options=asked)
    columns = columns_of(known, rows_of)
    use_this_python(df.sparkSession)
    selected = df.select(*map(quoted, columns))
    found = cluster.found
    first = first_of(cluster.sources, uuid.uuid4().hex, found.output_batch_rows, batch_id, LetterFolder.of(found))
    between = CrossingRows.of(first.plan, found.output_batch_rows)
    if first.plan.spouts == first.plan.components:  # the shuffle takes the rows as they are
        return cluster.behind_sources(selected.toDF(*between.names(0)))
    use = use_of(df, replace(first, use=found.use))
    return cluster.behind_sources(use.marked(with_plan(selected, use.operator, between.schema(), found)))


def operator_of(
    given_schema: StructType | None,
    topology: type[Topology] | str,
    asked: Mapping[str, str],
    keep: str | Sequence[str] = (),
    key: Sequence[str] = (),
    batch_id: int | None = None,
    any_columns: bool = False,
) -> tuple[list[str], OperatorPlan, StructType]:
    """Returns the columns that tasks get from a DataFrame of that schema, quoted; what the tasks do; the schema of
    their rows. ``given_schema``: None if Spark does not tell it; then the Input's declaration is taken for it.
    ``any_columns``: whether the DataFrame is unknown.

    Raises like ``apply``.
    """
    refuse_sources_own(asked, OF_OPERATORS, "an operator")
    found = parse(SourceOptions, asked)
    asked = letters_on(asked, found)
    plan, rows_of = _planned(topology, asked, found)
    if given_schema is None:
        _refuse_other_columns(rows_of, keep, key)
        given_schema = declared_schema(rows_of)
    rows = Rows(plan, found)
    schema = rows.schema()
    output = rows.output(schema)
    inputs = [] if any_columns else list(map(quoted, columns_of(given_schema, rows_of)))
    kept = list(map(quoted, _kept_names(keep, given_schema.names, schema.names)))
    keys = list(map(quoted, _named("key", key, given_schema.names)))
    columns = list(dict.fromkeys([*inputs, *kept, *keys]))
    places = None
    if kept or keys:
        _refuse_without_trees(plan)
        place_of = {name: place for place, name in enumerate(columns)}
        places = Keep(*(tuple(place_of[name] for name in names) for names in (kept, inputs, keys)))
        output = places.output(output)
        fields = {quoted(field.name): field for field in given_schema}
        schema = StructType([*(fields[name] for name in kept), *schema])
    letters = LetterFolder.of(found)
    operator = OperatorPlan(plan, output, rows_of.name, types_of(rows_of), uuid.uuid4().hex, batch_id, places, letters)
    return columns, replace(operator, use=found.use), schema


def _refuse_other_columns(rows_of: Any, keep: str | Sequence[str], key: Sequence[str]) -> None:
    """Raises SchemaError if ``keep`` or ``key`` name columns that are not known."""
    known = rows_of.stream("default").fields
    for argument, names in (("keep", keep), ("key", key)):
        if (isinstance(names, str) and names) or any(name not in known for name in names):
            raise SchemaError(
                f"in a query function of a pipeline Spark tells no columns: {argument} takes those of input "
                f"{rows_of.name!r} alone, {', '.join(known)}. Given: {given(names)}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )


def _planned(topology: type[Topology] | str, asked: Mapping[str, str], found: SourceOptions) -> tuple[Plan, Any]:
    """The plan under these options, and its Input."""
    plan, rows_of = with_input(topology)
    refuse_tables_of_main(plan)
    plan, _ = in_its_environment(with_options(plan, config_of(found.config), asked, found))
    return plan, rows_of


def with_input(topology: type[Topology] | str) -> tuple[Plan, Any]:
    """Returns the plan before options, and its Input. Raises TopologyError if it has no Input."""
    cls = load_topology(topology) if isinstance(topology, str) else topology
    plan = compile_plan(cls, any_environment=True)
    rows_of = input_of(plan)
    if rows_of is None:
        raise TopologyError(
            "apply() gives a topology the rows of a DataFrame: begin it with rows = Input.spec(['id long', ...]) "
            "in place of its spouts, or read it by pystorm_source.read_stream(spark, Topology). "
            f"Given: {plan.name!r} with the spouts {[spout.name for spout in plan.spouts]!r}",
            code="PYSTORM_INVALID_TOPOLOGY",
        )
    return plan, rows_of


def _kept_names(keep: str | Sequence[str], have: list[str], own: list[str]) -> list[str]:
    """The DataFrame's columns that rows repeat. ``own``: the names that the topology's rows have."""
    taken = {name.lower() for name in own}
    if keep == "*":
        return _once("keep", [name for name in have if name.lower() not in taken], have)
    names = _named("keep", keep, have)
    clash = [name for name in names if name.lower() in taken]
    if clash:
        raise SchemaError(
            f"keep repeats column {clash[0]!r}, and the topology's rows have a field of that name: rename one of "
            f"them, or leave it out of keep. Given: {names!r}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )
    return names


def _named(argument: str, names: str | Sequence[str], have: list[str]) -> list[str]:
    """Returns the DataFrame's columns of these names, in its own spelling."""
    if isinstance(names, str) or not all(isinstance(name, str) for name in names):
        ways = "'*', or a list of names" if argument == "keep" else "a list of names"
        raise ArgumentTypeError(f"{argument} is {ways}. Given: {given(names)}", code="PYSTORM_INVALID_ARGUMENT")
    found = []
    known = ColumnNames(have)
    for name in dict.fromkeys(names):
        places = known.places_of(name)
        if not places:
            raise SchemaError(
                f"{argument} names column {name!r}, and the DataFrame has no such column. Given: {have!r}",
                code="PYSTORM_SCHEMA_MISMATCH",
            )
        found.append(have[places[0]])
    return _once(argument, found, have)


def _once(argument: str, names: list[str], have: list[str]) -> list[str]:
    known = ColumnNames(have)
    twice = [name for name in names if known.is_twice(name)]
    if twice:
        raise SchemaError(
            f"{argument} names column {twice[0]!r}, and the DataFrame has it more than once: rename one of them before "
            f"apply(). Given: {have!r}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )
    return names


def _refuse_without_trees(plan: Plan) -> None:
    if plan.options.acker_executors == 0:
        raise OptionError(
            "keep and key follow tuple trees, and this option switches them off: leave one of them out. Given: "
            "topology.acker.executors=0",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
