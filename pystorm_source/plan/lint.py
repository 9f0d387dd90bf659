"""Warnings about topologies that run but may not do what you expect. They never stop a query."""

import ast
import difflib
import inspect
import logging
import textwrap
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from pystorm_source.api.arrow_bolt import ArrowBolt
from pystorm_source.api.async_bolt import AsyncBolt
from pystorm_source.api.batching_bolt import BatchingBolt
from pystorm_source.api.bolt import Bolt
from pystorm_source.api.partitioned_spout import PartitionedSpout
from pystorm_source.api.reliable_spout import ReliableSpout
from pystorm_source.api.spout import Spout
from pystorm_source.api.stateful_bolt import StatefulBolt
from pystorm_source.api.tickless_batching_bolt import TicklessBatchingBolt
from pystorm_source.options import EngineOptions, Options, SourceOptions, family_of, fields_of
from pystorm_source.options.storm_keys import STORM_KEYS
from pystorm_source.options.storm_replacements import replacement_of
from pystorm_source.plan.key_states import has_timers, needs_time
from pystorm_source.plan.meeting import unions
from pystorm_source.plan.plan import ComponentPlan, Plan

logger = logging.getLogger("pystorm.plan")

TICKS = "topology.tick.tuple.freq.secs"
_HARMLESS = ("super", "isinstance", "type", "hasattr")  # may be given self
# The source sets the first two in every query; the others are words that may well be the user's own keys.
_NOT_FOR_SURE = ("failOnDataLoss", "path", "config", "feedback", "stream", "streams", "topology", "use", "key")
_KEY = "idempotency_key"
_READERS = "journal.readers"
_NEAR = 0.85  # "files.encodng" is near "files.encoding", "files" is not
_PER_TASK = {"fields": "by fields", "partial_key": "by partial key", "global": "globally"}


class Finding(NamedTuple):
    """``code`` is one of ``options.LINT_CODES``. ``component`` names one, several joined by arrows, or the topology.
    ``meaning``: what happens; ``remedy``: what to do."""

    code: str
    component: str
    meaning: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.component}: {self.meaning}; {self.remedy} [{self.code}]"


def lint(plan: Plan) -> tuple[Finding, ...]:
    """Everything found, by kind and then upstream first. Silent if it is unsure, and for codes in
    ``topology.lint.off``. Raises nothing: a check that fails is logged and finds nothing."""
    found: list[Finding] = []
    looks: tuple[Callable[[Plan], Iterator[Finding]], ...] = (
        _batches_without_ticks,
        _callbacks_without_ids,
        _rows_returned,
        _cycles,
        _groupings_per_task,
        _spouts_apart,
        _processes_of_ranges,
        _exceptions_that_still_end_the_task,
        _keys_without_effect,
        _unknown_keys,
    )
    for look in looks:
        try:
            found.extend(finding for finding in look(plan) if finding.code not in _unwanted(plan, finding.component))
        except Exception:
            logger.exception("a look at topology %r failed; it runs all the same", plan.name)
    return tuple(found)


def lint_operator(plan: Plan, is_shuffled: bool, has_key: bool) -> tuple[Finding, ...]:
    """Like ``lint``, for a topology over a DataFrame. ``is_shuffled``: whether a shuffle gives it its rows;
    ``has_key``: whether columns are the key of a row."""
    found = lint(plan)
    if not is_shuffled or has_key:
        return found
    asking = [component for component in plan.components if names_key(component.cls)]
    return found + tuple(
        Finding(
            "key-behind-shuffle",
            component.name,
            f"{component.cls.__name__} asks for idempotency_key, and the rows come from a shuffle: a task that is "
            "tried again gets them in another order, and a row another key",
            "name the columns that tell a row from all others: apply(df, ..., key=['id'])"
            if not any(spout.origin for spout in plan.spouts)
            else "make a key of the tuple's own values",
        )
        for component in asking
        if "key-behind-shuffle" not in _unwanted(plan, component.name)
    )


def may_ask_for_keys(plan: Plan) -> bool:
    """Whether a component names ``idempotency_key``, or a user's class has no source to look at."""
    return any(may_ask_for_key(component.cls) for component in plan.components)


def may_ask_for_key(cls: type[Any]) -> bool:
    """Like ``may_ask_for_keys``, for one component's class."""
    return names_key(cls) or not all(map(_has_source, _user_classes(cls)))


def names_key(cls: type[Any]) -> bool:
    """Whether the source of a component's class names ``idempotency_key``. False without source."""
    return is_named_in_source(cls, _KEY)


def runs_again(plan: Plan) -> Finding | None:
    """The finding for a topology that runs once more over the same DataFrame; None if that does no harm."""
    calling = [component.name for component in plan.components if _calls_services(component.cls)]
    if not calling or "runs-again" in _unwanted(plan, plan.name):
        return None
    return Finding(
        "runs-again",
        plan.name,
        f"another action on the DataFrame runs the topology again, and {' and '.join(calling)} "
        f"call{'s' if len(calling) == 1 else ''} services again",
        "persist() the result and use that, or write it once",
    )


def differs_when_run_again(plan: Plan) -> tuple[Finding, ...]:
    """Findings in a stage before a cut: bolts whose rows depend on time or on the order of tuples, so that a task that
    is run again may give other rows."""
    found = []
    for component in plan.components:
        if component.is_spout or "stage-differs" in _unwanted(plan, component.name):
            continue
        by_time = component.options.tick_frequency and _takes_ticks(component.cls)
        by_order = issubclass(component.cls, BatchingBolt) and component.cls.tuples_between_batches
        if by_time or by_order:
            found.append(
                Finding(
                    "stage-differs",
                    component.name,
                    f"its rows depend on {'ticks' if by_time else 'the order of tuples'}: if Spark runs the stage "
                    "again for a lost task, a stage behind it may have rows of both",
                    "let Spark compare them: set spark.sql.shuffle.orderIndependentChecksum.enabled and "
                    "spark.sql.shuffle.orderIndependentChecksum.enableFullRetryOnMismatch to true (4.1 and later), or "
                    "give no ticks before the cut",
                )
            )
    return tuple(found)


def states_in_self(plan: Plan) -> tuple[Finding, ...]:
    """Findings in a stage behind a cut: bolts that count by key in an attribute. The next micro-batch may lack it."""
    found = []
    for component in plan.components:
        keyed = any(edge.consumer == component.name and edge.grouping == "fields" for edge in plan.edges)
        if not keyed or issubclass(component.cls, StatefulBolt) or "state-in-self" in _unwanted(plan, component.name):
            continue
        if name := _counted_in_self(component.cls):
            found.append(
                Finding(
                    "state-in-self",
                    component.name,
                    f"{component.cls.__name__} counts in self.{name}: the next micro-batch, or the task that is run "
                    "again, may have another process",
                    "derive it from StatefulBolt, declare state_fields = ['count long'], and write self.state.count = "
                    f"(self.state.count or 0) + 1 for self.{name}[key] += 1",
                )
            )
    return tuple(found)


def never_ends(stage: Plan) -> tuple[Finding, ...]:
    """Findings in a stage with states that time changes, if Spark runs micro-batches without rows for the stream."""
    return tuple(
        Finding(
            "never-ends",
            component.name,
            f"it has {'timers' if has_timers(component) else 'state_ttl_secs'}, so Spark runs a micro-batch after "
            "the other, with or without rows, and a query with trigger(availableNow=True) does not come to its end",
            "give the query trigger(processingTime=...); or, for availableNow, have time looked at with rows alone: "
            "spark.conf.set('spark.sql.streaming.noDataMicroBatches.enabled', 'false')",
        )
        for component in stage.components
        if needs_time(component) and "never-ends" not in _unwanted(stage, component.name)
    )


def _counted_in_self(cls: type[Any]) -> str:
    """The attribute whose items a method changes by +=; empty if none does, or if unsure."""
    for user_class in _user_classes(cls):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(user_class)))
        except (OSError, TypeError, SyntaxError, ValueError):
            return ""
        for node in ast.walk(tree):
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Subscript):
                held = node.target.value
                if isinstance(held, ast.Attribute) and isinstance(held.value, ast.Name) and held.value.id == "self":
                    return held.attr
    return ""


def _takes_ticks(cls: type[Any]) -> bool:
    return issubclass(cls, BatchingBolt) or (
        issubclass(cls, Bolt) and getattr(cls, "process_tick", None) is not getattr(Bolt, "process_tick", None)
    )


def _calls_services(cls: type[Any]) -> bool:
    words = ("idempotency_key", "self.limit(")
    return issubclass(cls, AsyncBolt) or any(is_named_in_source(cls, word) for word in words)


def names_limit(cls: type[Any]) -> bool:
    """Whether the source of a component's class shows that it takes permits of a rate limit. False if unsure."""
    return is_named_in_source(cls, "self.limit(")


def may_take_permits(cls: type[Any]) -> bool:
    """Like ``names_limit``, or a user's class has no source to look at."""
    return names_limit(cls) or not all(map(_has_source, _user_classes(cls)))


def _unwanted(plan: Plan, component: str) -> list[str]:
    own = {entry.name: entry.options for entry in plan.components}
    return own.get(component, plan.options).lint_off_codes


def _batches_without_ticks(plan: Plan) -> Iterator[Finding]:
    for component in plan.components:
        cls = component.cls
        if not issubclass(cls, BatchingBolt) or issubclass(cls, TicklessBatchingBolt):
            continue
        if cls.process is not BatchingBolt.process or cls.process_tick is not BatchingBolt.process_tick:
            continue  # gathers and fires in its own way
        if component.options.tick_frequency or cls.tuples_between_batches:
            continue
        yield Finding(
            "batch-without-ticks",
            component.name,
            f"{cls.__name__} gets no tick tuples, so its batches wait in memory for the end of the micro-batch",
            f"set {TICKS} in its config or in Topology.config, or tuples_between_batches in the class, or derive it "
            "from TicklessBatchingBolt",
        )


def _callbacks_without_ids(plan: Plan) -> Iterator[Finding]:
    for component in plan.spouts:
        cls = component.cls
        if not issubclass(cls, Spout) or issubclass(cls, (PartitionedSpout, ReliableSpout)):
            continue
        named = [name for name in ("ack", "fail") if getattr(cls, name) is not getattr(Spout, name)]
        if named and _never_gives_ids(cls):
            yield Finding(
                "callbacks-without-ids",
                component.name,
                f"{cls.__name__} defines {' and '.join(named)}, which are not called for tuples that are emitted "
                "without an id",
                "emit(values, tup_id=...) with an id that is unique among the pending tuples",
            )


def _never_gives_ids(cls: type[Any]) -> bool:
    """Whether the source of the class shows emits, all of them ``self.emit(...)`` without an id. False if unsure."""
    emits = 0
    for user_class in _user_classes(cls):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(user_class)))
        except (OSError, TypeError, SyntaxError, ValueError):
            return False
        body = tree.body[0]
        if not isinstance(body, ast.ClassDef):
            return False
        for method in body.body:
            if isinstance(method, ast.FunctionDef):
                shown = _emits_of(method, method.args.args[0].arg if method.args.args else "")
                if shown is None:
                    return False
                emits += shown
    return emits > 0


def _rows_returned(plan: Plan) -> Iterator[Finding]:
    for component in plan.components:
        cls = component.cls
        if not issubclass(cls, Bolt) or not component.streams or is_named_in_source(cls, "emit"):
            continue
        method = "process_batch" if issubclass(cls, (BatchingBolt, ArrowBolt)) else "process"
        if cls.process_many is not Bolt.process_many:
            method = "process_many"
        if _returns_rows(getattr(cls, method)):
            yield Finding(
                "rows-returned",
                component.name,
                f"{method}() of {cls.__name__} returns rows and emits nothing: they go nowhere",
                "self.emit_batch(batch)" if issubclass(cls, ArrowBolt) else "self.emit([...]) for each row",
            )


def _returns_rows(function: Any) -> bool:
    """Whether a return of the function is written as a list, a tuple or a comprehension. False if unsure."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return False
    rows = (ast.List, ast.Tuple, ast.Dict, ast.Set, ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)
    return any(isinstance(node, ast.Return) and isinstance(node.value, rows) for node in ast.walk(tree))


def _emits_of(function: ast.FunctionDef, own: str) -> int | None:
    """How many emits without an id the method has; None if one has an id, or something else might emit."""
    emits = 0
    understood: set[int] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "emit":
            if not (isinstance(node.func.value, ast.Name) and node.func.value.id == own) or _may_have_id(node):
                return None
            understood.add(id(node.func))
            emits += 1
        elif isinstance(node, ast.Attribute) and node.attr == "emit_many":
            return None  # it may give ids
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute):
            understood.add(id(node.value))
            if node.attr == "emit" and id(node) not in understood:
                return None  # handed on, as in emit = self.emit
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _HARMLESS:
            understood.update(id(argument) for argument in node.args)
    if any(isinstance(node, ast.Name) and node.id == own and id(node) not in understood for node in ast.walk(function)):
        return None  # self is passed on: its receiver can emit
    return emits


def _may_have_id(call: ast.Call) -> bool:
    if len(call.args) > 1 or any(isinstance(argument, ast.Starred) for argument in call.args):
        return True
    return any(
        keyword.arg is None
        or (keyword.arg == "tup_id" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is None))
        for keyword in call.keywords
    )


def _cycles(plan: Plan) -> Iterator[Finding]:
    below: dict[str, list[str]] = {component.name: [] for component in plan.components}
    for edge in plan.edges:
        if edge.consumer not in below[edge.producer]:
            below[edge.producer].append(edge.consumer)
    reported: set[str] = set()
    for name in below:
        way = None if name in reported else _way_back(name, below)
        if way is None:
            continue
        reported.update(way)
        yield Finding(
            "cycle",
            " -> ".join([*way, name]),
            "tuples can circle: full queues block each other and further tuples wait in memory, but a tuple that "
            "circles for ever keeps the micro-batch from ending",
            "let every tuple leave the cycle after a bounded number of rounds",
        )


def _way_back(start: str, below: dict[str, list[str]]) -> list[str] | None:
    """The shortest way from a component to itself, or None."""
    ways = [[start]]
    seen: set[str] = set()
    while ways:
        way = ways.pop(0)
        for consumer in below[way[-1]]:
            if consumer == start:
                return way
            if consumer not in seen:
                seen.add(consumer)
                ways.append([*way, consumer])
    return None


def _groupings_per_task(plan: Plan) -> Iterator[Finding]:
    for component in plan.components:
        hows = {
            edge.grouping: None for edge in plan.edges if edge.consumer == component.name and edge.grouping in _PER_TASK
        }
        # Behind a cut the shuffle has brought together what belongs together.
        sources = [spout for spout in _sources_of(component, plan) if spout.origin is None and not _is_one_task(spout)]
        if hows and any(spout.is_partitioned for spout in sources):
            yield Finding(
                "grouping-per-task",
                component.name,
                f"its input is grouped {' and '.join(_PER_TASK[how] for how in hows)} inside each Spark task, and "
                "several may read at once: the same key can be at work in each of them",
                "if it must come together, read it with scope='cluster', or use groupBy or transformWithState "
                "behind it",
            )


def _is_one_task(spout: ComponentPlan) -> bool:
    """A journal without ``journal.readers``: one Spark task reads it at a time, and nothing is grouped apart."""
    return spout.has_journal and _READERS not in {key.lower() for key, _ in spout.config}


def _spouts_apart(plan: Plan) -> Iterator[Finding]:
    for bolt, spouts in unions(plan):
        yield Finding(
            "spouts-apart",
            bolt,
            f"tuples of {spouts} come to it in different Spark tasks, as a task reads one range of one spout: neither "
            "it nor a bolt after it can rely on having those of one when it gets those of another",
            "if tuples of one spout need those of another, join in Spark; if not, say so by "
            "topology.spouts.independent=true",
        )


def _processes_of_ranges(plan: Plan) -> Iterator[Finding]:
    """Where Spark could cut what the bolt reads, and no tuples of several parts must meet in one task."""
    for component in plan.components:
        sources = list(_sources_of(component, plan)) if component.processes else []
        if not sources or not all(map(_may_be_cut, sources)) or _meets_in_a_task(component, plan):
            continue
        yield Finding(
            "processes-of-ranges",
            component.name,
            f"it has processes, and Spark can cut all that it reads into more tasks: {_named(sources)} reads ranges of "
            "offsets. More tasks use as many cores, and no tuple is pickled",
            f"take out processes={component.processes} and read with option minPartitions; or keep it if one task must "
            "have all rows",
        )


def _named(sources: list[ComponentPlan]) -> str:
    return " and ".join(repr(source.name) for source in sources)


def _may_be_cut(spout: ComponentPlan) -> bool:
    """False if unsure: a spout that overrides ``split`` may refuse to."""
    cls = spout.runs_as
    return issubclass(cls, PartitionedSpout) and cls.split is PartitionedSpout.split and spout.origin is None


def _meets_in_a_task(component: ComponentPlan, plan: Plan) -> bool:
    """Whether tuples are grouped inside a task at the component or behind it, so that more tasks would divide them."""
    at, seen = [component.name], {component.name}
    while at:
        name = at.pop()
        if any(edge.consumer == name and edge.grouping in _PER_TASK for edge in plan.edges):
            return True
        more = {edge.consumer for edge in plan.edges if edge.producer == name} - seen
        seen |= more
        at += more
    return False


def _exceptions_that_still_end_the_task(plan: Plan) -> Iterator[Finding]:
    for component in plan.components:
        cls = component.cls
        if not issubclass(cls, Bolt) or cls.exit_on_exception or not cls.auto_fail:
            continue
        if is_named_in_source(cls, "auto_fail") or not any(
            _fails_its_task(s, plan) for s in _sources_of(component, plan)
        ):
            continue
        yield Finding(
            "exception-ends-task",
            component.name,
            f"{cls.__name__} has exit_on_exception = False, but an exception fails the tuple, and a tuple of a "
            "PartitionedSpout that no retry helps ends the Spark task all the same",
            "set topology.dead.letter to stream or drop to go on without such tuples, or catch the exception",
        )


def _fails_its_task(spout: ComponentPlan, plan: Plan) -> bool:
    return spout.is_partitioned and spout.options.dead_letter == "fail"


def is_named_in_source(cls: type[Any], word: str) -> bool:
    """Whether the source of a user's class, if there is one, has that word."""
    for user_class in _user_classes(cls):
        try:
            if word in inspect.getsource(user_class):
                return True
        except (OSError, TypeError):
            continue
    return False


def _has_source(cls: type[Any]) -> bool:
    try:
        return bool(inspect.getsource(cls))
    except (OSError, TypeError):
        return False


def _user_classes(cls: type[Any]) -> Iterator[type[Any]]:
    """The class and its bases, except this package's."""
    for base in cls.__mro__:
        if base is not object and not base.__module__.startswith(("pystorm_source.", "cython_core.")):
            yield base


def _keys_without_effect(plan: Plan) -> Iterator[Finding]:
    known = {key.lower() for key in fields_of(EngineOptions)}
    for name, config in [(plan.name, plan.config), *((entry.name, entry.config) for entry in plan.components)]:
        idle = [key for key, value in config if key in STORM_KEYS and key.lower() not in known and value is not None]
        if idle:
            yield Finding(
                "key-without-effect",
                name,
                f"its config sets {', '.join(idle)}, which Storm has and this engine has not",
                f"instead: {_instead_of(idle)}",
            )


def _instead_of(keys: list[str]) -> str:
    """What takes the place of these keys, grouped by equal answers."""
    together: dict[str, list[str]] = {}
    for key in keys:
        together.setdefault(replacement_of(key), []).append(key)
    return "; ".join(f"for {', '.join(named)} {instead}" for instead, named in together.items())


def _unknown_keys(plan: Plan) -> Iterator[Finding]:
    """Keys that only the reader takes, and those that look like a misspelt one; any other is the user's own."""
    reader = {key.lower(): key for key in fields_of(SourceOptions) if key not in _NOT_FOR_SURE}
    for name, config, read_by in [
        (plan.name, plan.config, plan.components),
        *((entry.name, entry.config, (entry,)) for entry in plan.components),
    ]:
        tables: list[type[Options]] = [EngineOptions, *(table for entry in read_by for table in entry.option_tables)]
        known = {key.lower(): key for table in tables for key in fields_of(table)}
        for key, _ in config:
            lowered = key.lower()
            if lowered in known or key in STORM_KEYS or family_of(key, known.values()) is not None:
                continue
            if lowered in reader:
                meaning = f"its config sets {key}, which only the reader takes"
                yield Finding("unknown-key", name, meaning, f"say .option({reader[lowered]!r}, ...) there")
            elif near := difflib.get_close_matches(lowered, known, n=1, cutoff=_NEAR):
                meaning = f"its config sets {key}, which nothing here reads"
                yield Finding("unknown-key", name, meaning, f"if it is not a key of your own: {known[near[0]]}?")


def _sources_of(component: ComponentPlan, plan: Plan) -> Iterator[ComponentPlan]:
    """The spouts whose tuples, directly or through bolts, come to a component."""
    above = plan.spouts_above[component.name]
    return (spout for spout in plan.spouts if spout.name in above)
