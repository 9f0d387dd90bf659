"""The request of one ``.load()``: every option read and checked, the topology compiled. Frozen and picklable."""

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.channel.leases.checks import check_limits
from pystorm_source.errors import OptionError
from pystorm_source.journal.options import JournalOptions
from pystorm_source.options import SourceOptions, parse
from pystorm_source.options.duration import parse_duration
from pystorm_source.plan import Plan, compile_plan, load_topology
from pystorm_source.plan.inputs import refuse_input
from pystorm_source.source.journaled import journaled
from pystorm_source.source.offsets.positions import EARLIEST, LATEST, Positions
from pystorm_source.source.replays import with_replays
from pystorm_source.spark.crossing_rows import CrossingRows
from pystorm_source.spark.interned import interned, pickled
from pystorm_source.spark.plan_options import (
    conf_given,
    config_of,
    in_its_environment,
    letters_on,
    with_options,
    without_sparks_own,
)
from pystorm_source.spark.rows import Rows


@dataclass(frozen=True)
class ReadRequest:
    """``source`` is the name of the format. ``max_trigger_delay`` is in seconds. ``for_batches``: the given
    keys that say where a batch read ends, with their values."""

    source: str
    plan: Plan
    options: SourceOptions
    starting: Positions
    ending: Positions
    max_trigger_delay: float
    journal: JournalOptions
    for_batches: tuple[tuple[str, Any], ...]

    @classmethod
    def of(cls, given: Mapping[str, str], source: str = "pystorm", plan: Plan | None = None) -> "ReadRequest":
        """Reads options as Spark gives them (lower-cased keys, str values). ``plan``: a registered topology's.

        Raises OptionError, TopologyError or SchemaError with key, value and remedy.
        """
        options = parse(SourceOptions, given)
        given = letters_on(given, options)
        config = config_of(options.config)
        if plan is None:
            topology = load_topology(_topology_of(options, given))
            config |= conf_given(given, options, (spec.component_cls for spec in topology.specs))
            plan = compile_plan(topology, config, any_environment=True)
        else:
            if options.topology:
                raise OptionError(
                    f"format {source!r} was registered with its topology: leave option 'topology' out, or use format "
                    "'pystorm'. "
                    f"Given: {options.topology!r}",
                    code="PYSTORM_OPTIONS_CONFLICT",
                )
            plan = with_options(plan, config, given, options)
        refuse_input(plan)
        if options.key:
            raise OptionError(
                "option 'key' is for sinks: a row of a source has the key of its offset. Leave it out. "
                f"Given: {options.key!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        plan, for_batches = in_its_environment(plan)
        journal = parse(JournalOptions, dict(plan.config))
        plan = _guaranteed(plan, options, journal)
        if plan.leaving is None:
            Rows(plan, options)
        partitioned = {s.name: s.runs_as for s in plan.spouts if issubclass(s.runs_as, PartitionedSpout)}
        request = cls(
            source=source,
            plan=plan,
            options=options,
            starting=Positions.parse("startingOffsets", options.starting_offsets, EARLIEST, partitioned),
            ending=Positions.parse("endingOffsets", options.ending_offsets or "latest", LATEST, partitioned),
            max_trigger_delay=parse_duration("maxTriggerDelay", options.max_trigger_delay),
            journal=journal,
            for_batches=for_batches,
        )
        request._check_together()
        return request

    def __reduce__(self) -> tuple[Any, ...]:
        return interned, (self._pickled,)

    @cached_property
    def _pickled(self) -> bytes:
        return pickled(_Fields(tuple(getattr(self, field.name) for field in fields(self))))

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of the plan in this process."""
        return fingerprint(self.plan)

    @property
    def rows(self) -> Rows | CrossingRows:
        """The rows that this request gives."""
        if self.plan.leaving is not None:
            return CrossingRows.of(self.plan, self.options.output_batch_rows)
        return Rows(self.plan, self.options)

    def check_here(self) -> None:
        """Asks the spouts, on the driver's machine, whether their input can exist here. Raises OptionError."""
        for component in self.plan.spouts:
            check = getattr(component.cls, "_pystorm_check_here", None)
            if check is not None:
                check(self.plan.conf_of(component))

    def check_streaming(self) -> None:
        """Raises OptionError for options that only a batch read takes, or rate limits that cannot hold."""
        check_limits(self.plan.options, "feedback=off" if self.options.feedback == "off" else "")
        for spout in self.plan.spouts:
            if spout.cls._pystorm_has_notes and spout.wrapper is None:
                raise OptionError(
                    f"spout {spout.name!r} ({spout.cls.__name__}) keeps in the journal how far it is: without one, "
                    "rows would be lost or come again. Set option journal.path, a folder or URI that driver and "
                    f"executors share. Given: delivery.guarantee={self.options.delivery_guarantee!r}, no journal.path",
                    code="PYSTORM_SPOUT_WITHOUT_OFFSETS",
                )
        if self.options.ending_offsets:
            raise OptionError(
                "option 'endingOffsets' is for spark.read: a stream has no end; use Trigger.AvailableNow to stop at "
                f"the present data. Given: {self.options.ending_offsets!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        for key, value in self.for_batches:
            raise OptionError(
                f"option {key!r} is for spark.read: a stream has no end; use Trigger.AvailableNow to stop at "
                f"the present data. Given: {value!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )

    def check_batch(self) -> None:
        """Raises OptionError for options or spouts that only a stream takes, or rate limits that cannot hold."""
        check_limits(self.plan.options, "a batch read")
        if any(component.has_journal for component in self.plan.spouts):
            raise OptionError(
                "option 'journal.path' is for streams: a batch read ends and never reads its tuples again. "
                "Leave it out, and set delivery.guarantee=best-effort for spouts without offsets. "
                f"Given: {self.journal.shown!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        for component in self.plan.spouts:
            check = getattr(component.cls, "_pystorm_check_batch", None)
            if check is not None:
                check(self.plan.conf_of(component))
        if self.starting.default == LATEST or LATEST in self.starting.named.values():
            raise OptionError(
                "option 'startingOffsets' of a batch read cannot be latest: nothing would be read. Say earliest, or "
                "offsets. "
                f"Given: {self.options.starting_offsets!r}",
                code="PYSTORM_INVALID_OPTION",
            )

    def _check_together(self) -> None:
        least, most = self.options.min_offsets_per_trigger, self.options.max_offsets_per_trigger
        if least is not None and most is not None and least > most:
            raise OptionError(
                f"minOffsetsPerTrigger is at most maxOffsetsPerTrigger ({most}), or no micro-batch could ever start "
                "early: lower it. "
                f"Given: {least!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
        if self.ending.default == EARLIEST or EARLIEST in self.ending.named.values():
            raise OptionError(
                "option 'endingOffsets' cannot be earliest: nothing would be read. Given: "
                f"{self.options.ending_offsets!r}",
                code="PYSTORM_INVALID_OPTION",
            )
        for spout in self.plan.spouts:
            own = getattr(spout.cls, "_pystorm_start_option", None)
            start = None if own is None else self.plan.conf_of(spout).get(own)
            is_named = any(key.component == spout.name for key in self.starting.named)
            if start and (is_named or self.starting.default != EARLIEST):
                raise OptionError(
                    f"options {own!r} and 'startingOffsets' both say where a new query begins with spout "
                    f"{spout.name!r}: leave one out. Given: {start!r}, {self.options.starting_offsets!r}",
                    code="PYSTORM_OPTIONS_CONFLICT",
                )
        self._check_apart()

    def _check_apart(self) -> None:
        """Raises OptionError if two spouts share a value that must be unique, such as the name of a session."""
        known: dict[tuple[Any, ...], str] = {}
        for spout in self.plan.spouts:
            keys: tuple[str, ...] = getattr(spout.cls, "_pystorm_apart", ())
            conf = self.plan.conf_of(spout)
            other = known.setdefault((keys, *(conf.get(key) for key in keys)), spout.name) if keys else spout.name
            if other != spout.name:
                raise OptionError(
                    f"spouts {other!r} and {spout.name!r} have the same {keys[-1]}, which one client alone may have: "
                    f"give each its own. Given: {conf.get(keys[-1])!r}",
                    code="PYSTORM_OPTIONS_CONFLICT",
                )


class _Fields:
    """A request in transit: only its fields; the receiver derives the rest."""

    def __init__(self, values: tuple[Any, ...]):
        self._values = values

    def __reduce__(self) -> tuple[Any, ...]:
        return ReadRequest, self._values


def _topology_of(options: SourceOptions, given: Mapping[str, str]) -> str:
    if options.topology:
        return options.topology
    remedy = (
        "option('topology', 'package.module:Class') on the reader, or register the class with "
        "pystorm_source.register(spark, Class) and "
        "use its format"
    )
    others = [key for key in given if key.lower() != "topology"]
    if near := difflib.get_close_matches("topology", others, n=1, cutoff=0.75):
        remedy = f"did you mean it by {near[0]!r}? Say {remedy}"
    if not without_sparks_own(given):
        remedy += (
            ". Spark gives the OPTIONS of CREATE TABLE to no query: use CREATE TEMPORARY VIEW ... USING pystorm "
            "OPTIONS (...), or "
            "SELECT ... FROM t WITH (topology = '...')"
        )
    raise OptionError(f"option 'topology' is needed: {remedy}. Given: {sorted(given)!r}", code="PYSTORM_MISSING_OPTION")


def _guaranteed(plan: Plan, options: SourceOptions, journal: JournalOptions) -> Plan:
    """The plan with offsets around each CursorSpout that is replayable, and a journal around each other spout without
    offsets, if option journal.path is set. Raises OptionError if it is not, and best effort is not allowed either."""
    plan = with_replays(plan)
    without = [component for component in plan.spouts if not component.is_partitioned]
    if not without:
        return plan
    if journal.path:
        return journaled(plan, options, journal)
    if options.delivery_guarantee == "best-effort":
        return plan
    spout = without[0]
    raise OptionError(
        f"spout {spout.name!r} ({spout.cls.__name__}) has no offsets, so Spark cannot replay the tuples of a failed "
        "task: set option journal.path, a folder or URI that driver and executors share; write a PartitionedSpout; or "
        "accept the loss with option delivery.guarantee=best-effort. Given: "
        f"delivery.guarantee={options.delivery_guarantee!r}, no journal.path",
        code="PYSTORM_SPOUT_WITHOUT_OFFSETS",
    )


def fingerprint(plan: Plan) -> str:
    """Equal for equal plans in any process; short. Code counts by its name."""
    customs = [type(edge.custom).__qualname__ for edge in plan.edges]
    return hashlib.sha256(repr((str(plan), plan.edges, customs, plan.config)).encode()).hexdigest()[:16]
