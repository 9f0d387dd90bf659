"""A topology that is cut: its sources, and behind each cut an operator over what the shuffle gives::

sources, or df ──► CrossingRows ──► shuffle ──► operator ──► CrossingRows ──► shuffle ──► operator ──► rows
"""

import logging
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from pystorm_source.errors import ArgumentError, OptionError, SchemaError, TopologyError, given
from pystorm_source.operator.keyed import keyed
from pystorm_source.operator.permits import permits_of
from pystorm_source.operator.task import OperatorPlan, task_function
from pystorm_source.options import SourceOptions, fields_of, parse
from pystorm_source.plan import Plan
from pystorm_source.plan.inputs import input_of
from pystorm_source.plan.lint import (
    Finding,
    differs_when_run_again,
    lint_operator,
    names_limit,
    never_ends,
    states_in_self,
)
from pystorm_source.plan.stages import Stage, cut, refuse_letters
from pystorm_source.spark.crossing_rows import CrossingRows
from pystorm_source.spark.ddl import columns_of_text
from pystorm_source.spark.dead_letter_file import LetterFolder
from pystorm_source.spark.input_columns import types_of
from pystorm_source.spark.plan_options import config_of, in_its_environment, letters_on, with_options
from pystorm_source.spark.rows import Rows
from pystorm_source.spark.versions import map_in_arrow, may_stream
from pystorm_source.stages.crossing import Crossing
from pystorm_source.worker.output import OutputPlan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

logger = logging.getLogger("pystorm.operator")

SCOPES = ("task", "cluster")
_CHECKSUM = "spark.sql.shuffle.orderIndependentChecksum"
_said: set[str] = set()
_OF_THE_PLAN = ("config", "stream", "streams", "includeMetadata")
"""Options of a source that the plan has already, or that say which rows come out at the end."""


def scope_of(scope: Any) -> str:
    """The scope. Raises ArgumentError for another one."""
    if scope not in SCOPES:
        raise ArgumentError(
            "scope is 'task': groupings hold inside of each Spark task, or 'cluster': the topology is cut where they "
            f"must hold across tasks. Given: {given(scope)}",
            code="PYSTORM_INVALID_ARGUMENT",
        )
    return str(scope)


@dataclass(frozen=True)
class Cluster:
    """``plan``: the whole topology under its options; ``found``: the options among them that sources have.
    ``stages``: one if there is nothing to cut. ``rows``, ``schema``: what comes out of the last one."""

    plan: Plan
    found: SourceOptions
    stages: tuple[Stage, ...]
    rows: Rows
    schema: StructType
    batch_id: int | None = None

    @classmethod
    def of(
        cls, plan: Plan, asked: Mapping[str, str], schema: "StructType | str | None" = None, batch_id: int | None = None
    ) -> "Cluster":
        """Cuts a compiled topology, a source or one with an Input, under these options. ``schema``: the user's.

        Raises OptionError, SchemaError, or TopologyError if it cannot be cut.
        """
        found = parse(SourceOptions, asked)
        whole = with_options(plan, config_of(found.config), letters_on(asked, found), found)
        whole, _ = in_its_environment(whole, is_cut=True)
        if len(stages := cut(whole, ())) > 1:
            _refuse_what_is_lost(whole, found)
            if input_of(whole) is None:
                _refuse_limits_of_sources(stages[0].plan)
        rows = Rows(whole, found)
        stages = cut(whole, [(each.component.name, each.stream.name) for each in rows.streams])
        return cls(whole, found, stages, rows, _schema(rows, schema), batch_id)

    @property
    def is_cut(self) -> bool:
        """Whether there is more than one stage."""
        return len(self.stages) > 1

    @property
    def sources(self) -> Plan:
        """The first stage. A source's has no rate limits, unless a Redis gives all stages their permits: its tasks get
        permits from another place than operators' tasks."""
        plan = self.stages[0].plan
        if not plan.options.limits or plan.options.rate_limit_redis or input_of(self.plan) is not None:
            return plan
        return plan.configured({key: value for key, value in plan.config if key != "topology.rate.limit"})

    def options_of_sources(self, asked: Mapping[str, str]) -> dict[str, str]:
        """Returns the options that say how sources are read. The others are already in the plan."""
        keys = {key.lower() for key in fields_of(SourceOptions)} - {key.lower() for key in _OF_THE_PLAN}
        return {key: value for key, value in asked.items() if key.lower() in keys}

    def behind_sources(self, df: "DataFrame") -> "DataFrame":
        """Returns the rows of the last stage. ``df``: the rows of the first."""
        if not self.is_cut:
            return df
        if not _compares_rows(df.sparkSession):
            for stage in self.stages[:-1]:
                warn_once(differs_when_run_again(stage.plan))
        partitions = self.plan.options.stage_partitions or _cores(df.sparkSession)
        applied = uuid.uuid4().hex
        before = self.stages[0]
        for number, stage in enumerate(self.stages[1:], start=1):
            rows = CrossingRows.of(before.plan, self.found.output_batch_rows)
            crossing = Crossing(rows, before.leaving, stage, partitions, have_met=number > 1)
            output, schema = self._output(stage)
            operator = _operator(crossing, output, f"{applied}-{number}", self.batch_id, LetterFolder.of(self.found))
            if stage.stateful is not None:
                if may_stream(df) and _runs_without_rows(df.sparkSession):
                    warn_once(never_ends(stage.plan))
                operator = replace(operator, permits_from=permits_of(stage.plan, df.sparkSession, self.found))
                df = keyed(df, crossing, operator, schema)
            else:
                df = with_plan(crossing.shuffled(df), operator, schema, self.found)
            before = stage
        return df

    def _output(self, stage: Stage) -> tuple[OutputPlan, StructType]:
        if stage.plan.leaving is not None:
            between = CrossingRows.of(stage.plan, self.found.output_batch_rows)
            return between.output(), between.schema()
        output = self.rows.output(self.schema)
        views = []
        for view in output.views:
            component, stream = stage.carrier_of(view.component, view.stream)
            views.append(replace(view, component=component, stream=stream, shown=(view.component, view.stream)))
        return replace(output, views=tuple(views)), self.schema


def with_plan(df: "DataFrame", operator: OperatorPlan, schema: StructType, found: SourceOptions) -> "DataFrame":
    """The rows of an operator over the columns that it takes, in their order. Raises TopologyError for a component that
    does not pickle, and as ``permits_of``."""
    warn_once([*lint_operator(operator.plan, is_shuffled=True, has_key=False), *states_in_self(operator.plan)])
    operator = replace(operator, permits_from=permits_of(operator.plan, df.sparkSession, found))
    return map_in_arrow(df, task_function(operator), schema)


def warn_once(findings: Iterable[Finding]) -> None:
    """Warns of what runs, but may not do what the user expects: once for each finding in this process."""
    for finding in findings:
        if str(finding) not in _said:
            _said.add(str(finding))
            logger.warning("%s", finding)


def _compares_rows(spark: "SparkSession") -> bool:
    """Whether Spark notices that a stage gave other rows when it was run again, and then runs the stages behind it
    again, too."""
    try:
        return all(spark.conf.get(f"{_CHECKSUM}.{key}") == "true" for key in ("enabled", "enableFullRetryOnMismatch"))
    except Exception:  # Spark 4.0 has no such option
        return False


def _runs_without_rows(spark: "SparkSession") -> bool:
    return str(spark.conf.get("spark.sql.streaming.noDataMicroBatches.enabled", "true")).lower() == "true"


def first_of(plan: Plan, applied: str, batch_rows: int, batch_id: int | None, letters: LetterFolder) -> OperatorPlan:
    """The first stage of a topology that begins with an Input."""
    rows_of: Any = input_of(plan)
    output = CrossingRows.of(plan, batch_rows).output()
    return OperatorPlan(plan, output, rows_of.name, types_of(rows_of), applied, batch_id, letters=letters)


def _operator(
    crossing: Crossing, output: OutputPlan, applied: str, batch_id: int | None, letters: LetterFolder
) -> OperatorPlan:
    plan, entries = crossing.stage.plan, crossing.entries()
    only = entries[0]
    operator = OperatorPlan(plan, output, only.name, only.columns, applied, batch_id, letters=letters)
    return operator if len(entries) == 1 else replace(operator, entries=entries)


def _schema(rows: Rows, asked: "StructType | str | None") -> StructType:
    if asked is None:
        return rows.schema()
    columns = columns_of_text(asked)
    if columns is None:
        raise SchemaError(
            "scope='cluster' reads the schema itself: give it without comments, or a StructType. "
            f"Given: {given(asked)}",
            code="PYSTORM_SCHEMA_MISMATCH",
        )
    return columns


def _refuse_what_is_lost(plan: Plan, found: SourceOptions) -> None:
    """Raises OptionError for options that have no effect behind a shuffle."""
    if found.include_metadata:
        raise OptionError(
            "option 'includeMetadata' names task and offset of a source, which rows do not have behind a shuffle: "
            "leave it out with scope='cluster', or emit what you need. Given: 'true'",
            code="PYSTORM_OPTIONS_CONFLICT",
        )
    refuse_letters(plan, found.dead_letter_path)


def _refuse_limits_of_sources(plan: Plan) -> None:
    """Raises TopologyError if a component of the first stage takes permits: the other stages get theirs from another
    server, unless a Redis serves all."""
    if plan.options.rate_limit_redis:
        return
    for component in plan.components:
        takes = names_limit(component.cls) or (bool(component.options.bolt_limits) and not component.is_spout)
        if plan.options.limits and takes:
            raise TopologyError(
                f"{'spout' if component.is_spout else 'bolt'} {component.name!r} takes permits of a rate limit, and "
                "with scope='cluster' these are for bolts behind a cut: subscribe a bolt by a grouping that cuts, such "
                "as Grouping.fields, let a Redis give all stages their permits by topology.rate.limit.redis, or use "
                "scope='task'. "
                f"Given: topology.rate.limit={sorted(plan.options.limits)!r}",
                code="PYSTORM_CANNOT_BE_CUT",
            )


def _cores(spark: "SparkSession") -> int:
    """Tasks of a stage if no option says how many: as many as can run at once."""
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:  # Spark Connect tells its client nothing about the cluster
        return max(1, int(spark.conf.get("spark.sql.shuffle.partitions") or 1))
