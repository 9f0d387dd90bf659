"""The request of one ``.load()``: every option read and checked, the topology compiled. Frozen and picklable.

Options win over ``config`` (JSON or a file), which wins over ``Topology.config``; a component's own config stays on top
for that component. Engine keys, the other keys that Storm has and the keys that the topology's components declare (a
class attribute ``Options``) go into the plan's configuration, and so do ``path`` and ``failOnDataLoss``:
``initialize(conf, context)`` sees them, on the driver and in the tasks.
"""

import difflib
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.errors import OptionError
from pystorm_source.journal.options import JournalOptions
from pystorm_source.json_values import json_copy, json_of
from pystorm_source.options import (
    EngineOptions,
    Options,
    SourceOptions,
    check_known,
    declared_by,
    family_of,
    fields_of,
    parse,
)
from pystorm_source.options.duration import parse_duration
from pystorm_source.options.presets import preset_file, preset_names
from pystorm_source.options.storm_keys import STORM_KEYS
from pystorm_source.plan import Plan, check_meetings, compile_plan, load_topology
from pystorm_source.plan.inputs import refuse_input
from pystorm_source.plan.unread_par import refuse_unread_par
from pystorm_source.source.crossing_rows import CrossingRows
from pystorm_source.source.interned import interned, pickled
from pystorm_source.source.journaled import journaled
from pystorm_source.source.leases.checks import check_limits
from pystorm_source.source.offsets.positions import EARLIEST, LATEST, Positions
from pystorm_source.source.rows import Rows

# Options that Spark itself adds for tables made by CREATE TABLE ... USING.
_SPARKS_OWN = re.compile(
    r"provider|owner|location|external|is_managed_location|comment|collation|option\..*", re.IGNORECASE
)


@dataclass(frozen=True)
class ReadRequest:
    """``source`` is the name of the format. ``max_trigger_delay`` is in seconds. ``for_batches``: keys that say where a
    batch read ends and were given, with their values."""

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
        """Reads options as Spark gives them (lower-cased keys, str values). ``plan``: that of a registered topology.

        Raises OptionError, TopologyError or SchemaError with key, value and remedy.
        """
        options = parse(SourceOptions, given)
        given = letters_on(given, options)
        config = config_of(options.config)
        if plan is None:
            topology = load_topology(_topology_of(options, given))
            config |= _conf_given(given, options, (spec.component_cls for spec in topology.specs))
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
                code="PYSTORM_OPTION_NOT_FOR_THIS_READ",
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
        """That of the plan as this process has it."""
        return fingerprint(self.plan)

    @property
    def rows(self) -> Rows | CrossingRows:
        """The rows that this request gives."""
        if self.plan.leaving is not None:
            return CrossingRows.of(self.plan, self.options.output_batch_rows)
        return Rows(self.plan, self.options)

    def check_here(self) -> None:
        """Asks the spouts, on the driver's machine, whether what they are to read can be there. Raises OptionError."""
        for component in self.plan.spouts:
            check = getattr(component.cls, "_pystorm_check_here", None)
            if check is not None:
                check(self.plan.conf_of(component))

    def check_streaming(self) -> None:
        """Raises OptionError for options that only a batch read takes, or rate limits that cannot hold."""
        check_limits(self.plan.options, "feedback=off" if self.options.feedback == "off" else "")
        if self.options.ending_offsets:
            raise OptionError(
                "option 'endingOffsets' is for spark.read: a stream has no end; use Trigger.AvailableNow to stop at "
                f"the present data. Given: {self.options.ending_offsets!r}",
                code="PYSTORM_OPTION_NOT_FOR_THIS_READ",
            )
        for key, value in self.for_batches:
            raise OptionError(
                f"option {key!r} is for spark.read: a stream has no end; use Trigger.AvailableNow to stop at "
                f"the present data. Given: {value!r}",
                code="PYSTORM_OPTION_NOT_FOR_THIS_READ",
            )

    def check_batch(self) -> None:
        """Raises OptionError for options that only a stream takes, or rate limits that cannot hold."""
        check_limits(self.plan.options, "a batch read")
        if any(component.wrapper is not None for component in self.plan.spouts):
            raise OptionError(
                "option 'journal.path' is for streams: a batch read ends and never reads its tuples again. "
                "Leave it out, and set delivery.guarantee=best-effort for spouts without offsets. "
                f"Given: {self.journal.shown!r}",
                code="PYSTORM_OPTION_NOT_FOR_THIS_READ",
            )
        if self.starting.default == LATEST or LATEST in self.starting.named.values():
            raise OptionError(
                "option 'startingOffsets' of a batch read cannot be latest: nothing would be read. Say earliest, or "
                "offsets. "
                f"Given: {self.options.starting_offsets!r}",
                code="PYSTORM_INVALID_OFFSETS",
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
                code="PYSTORM_INVALID_OFFSETS",
            )


class _Fields:
    """A request on its way: its fields alone; the receiver derives the rest."""

    def __init__(self, values: tuple[Any, ...]):
        self._values = values

    def __reduce__(self) -> tuple[Any, ...]:
        return ReadRequest, self._values


def _without_sparks_own(given: Mapping[str, str]) -> list[str]:
    return [key for key in given if not _SPARKS_OWN.fullmatch(key)]


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
    if not _without_sparks_own(given):
        remedy += (
            ". Spark gives the OPTIONS of CREATE TABLE to no query: use CREATE TEMPORARY VIEW ... USING pystorm "
            "OPTIONS (...), or "
            "SELECT ... FROM t WITH (topology = '...')"
        )
    raise OptionError(f"option 'topology' is needed: {remedy}. Given: {sorted(given)!r}", code="PYSTORM_MISSING_OPTION")


def config_of(text: str) -> dict[str, Any]:
    """Reads ``config``: a JSON object, a preset, or the path of a file. Messages do not repeat its content."""
    if not text.strip():
        return {}
    path = None if text.lstrip().startswith("{") else preset_file(text) or Path(text)
    shown = f"{len(text)} characters of JSON" if path is None else repr(text)
    if path is not None and path.suffix.lower() not in (".yaml", ".yml", ".json"):
        raise OptionError(
            "option 'config' is a JSON object or the path of a .yaml or .json file, or a preset: "
            f"{' or '.join(preset_names())}. Given: {shown}",
            code="PYSTORM_INVALID_CONFIG",
        )
    try:
        content = text if path is None else path.read_text(encoding="utf-8")
        is_json = path is None or path.suffix.lower() == ".json"
        config = json_of(content) if is_json else yaml.safe_load(content)
    except OSError as error:
        raise OptionError(
            f"option 'config': the file cannot be read on the driver ({error.strerror}, working folder {Path.cwd()}). "
            f"Given: {shown}",
            code="PYSTORM_INVALID_CONFIG",
        ) from None
    except json.JSONDecodeError as error:
        where = f"{error.msg} in line {error.lineno}, column {error.colno}"
        raise OptionError(
            f"option 'config' is no JSON: {where}. Given: {shown}", code="PYSTORM_INVALID_CONFIG"
        ) from None
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{getattr(error, 'problem', error)}{f' in line {mark.line + 1}' if mark else ''}"
        raise OptionError(
            f"option 'config' is no YAML: {where}. Given: {shown}", code="PYSTORM_INVALID_CONFIG"
        ) from None
    if not isinstance(config, dict) or not all(isinstance(key, str) for key in config):
        raise OptionError(
            f"option 'config' holds one object of keys and values. Given: {shown}", code="PYSTORM_INVALID_CONFIG"
        )
    try:
        return dict(json_copy(config))
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"option 'config' holds JSON values only: {error}. Given: {sorted(config)!r}", code="PYSTORM_INVALID_CONFIG"
        ) from None


def with_options(plan: Plan, config: Mapping[str, Any], given: Mapping[str, str], options: SourceOptions) -> Plan:
    """The plan under ``config``, which ``config_of`` has read, and under the options of its engine and components.

    Raises OptionError for an unknown key.
    """
    conf = _conf_given(given, options, (component.cls for component in plan.components))
    configured = plan.configured({**dict(plan.config), **config, **conf})
    refuse_unread_par(configured)
    return configured


def letters_on(given: Mapping[str, str], options: SourceOptions) -> dict[str, str]:
    """The options, with what topology.dead.letter.path asks for. Raises OptionError if another one excludes that."""
    if not options.dead_letter_path:
        return dict(given)
    for key, value in given.items():
        if key.lower() == "topology.dead.letter" and value.lower() != "stream":
            raise OptionError(
                f"topology.dead.letter.path writes dead letters into files, and topology.dead.letter={value} leaves "
                f"none: keep one. Given: {options.dead_letter_path!r}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
    return {**given, "topology.dead.letter": "stream"}


def in_its_environment(plan: Plan, is_cut: bool = False) -> tuple[Plan, tuple[tuple[str, Any], ...]]:
    """The plan of the environment that it names, checked, and what ``_declared`` finds in it. ``is_cut``: it will be,
    where spouts are to meet.

    Raises OptionError or TopologyError.
    """
    plan = plan.in_environment(plan.options.environment)
    plan.check_dead_letters()
    if not is_cut:
        check_meetings(plan)
    return plan, _declared(plan)


def _conf_given(given: Mapping[str, str], options: SourceOptions, components: Iterable[type]) -> dict[str, Any]:
    """The options' part of the topology's configuration, in the spelling of the tables.

    Raises OptionError for an unknown key.
    """
    tables = dict.fromkeys(table for component in components for table in declared_by(component))
    known: tuple[type[Options], ...] = (EngineOptions, JournalOptions, *tables)
    keys = {key.lower(): key for key in STORM_KEYS}
    keys |= {key.lower(): key for table in known for key in fields_of(table)}
    check_known(_without_sparks_own(given), (SourceOptions, *known), STORM_KEYS)
    conf: dict[str, Any] = {keys[key.lower()]: value for key, value in given.items() if key.lower() in keys}
    conf |= {key.lower(): value for key, value in given.items() if family_of(key, keys.values())}
    if options.path:
        conf["path"] = options.path
    conf["failOnDataLoss"] = options.fail_on_data_loss
    return conf


def _declared(plan: Plan) -> tuple[tuple[str, Any], ...]:
    """Reads the options that components declare; of the spouts, those that were given and are for batch reads.

    Raises OptionError for a wrong one.
    """
    for_batches = []
    for component in plan.components:
        for table in component.option_tables:
            found = parse(table, plan.conf_of(component))
            for key in sorted(table.for_batches) if component.is_spout else ():
                field = fields_of(table)[key]
                if (value := getattr(found, field.name)) != field.default:
                    for_batches.append((key, value))
    return tuple(for_batches)


def _guaranteed(plan: Plan, options: SourceOptions, journal: JournalOptions) -> Plan:
    """The plan with a journal around each spout without offsets, if option journal.path is set. Raises OptionError if
    it is not, and best effort is not allowed either."""
    without = [component for component in plan.spouts if not component.is_partitioned]
    if not without:
        return plan
    if journal.path:
        return journaled(plan, options)
    if options.delivery_guarantee == "best-effort":
        return plan
    spout = without[0]
    raise OptionError(
        f"spout {spout.name!r} ({spout.cls.__name__}) has no offsets, so Spark cannot replay the tuples of a failed "
        "task: have them journaled with option journal.path, a folder or URI that driver and executors share; write "
        "it as a PartitionedSpout; or accept that loss with option delivery.guarantee=best-effort. Given: "
        f"delivery.guarantee={options.delivery_guarantee!r}, no journal.path",
        code="PYSTORM_SPOUT_WITHOUT_OFFSETS",
    )


def fingerprint(plan: Plan) -> str:
    """Equal for equal plans in any process; short. Code counts by its name."""
    customs = [type(edge.custom).__qualname__ for edge in plan.edges]
    return hashlib.sha256(repr((str(plan), plan.edges, customs, plan.config)).encode()).hexdigest()[:16]
