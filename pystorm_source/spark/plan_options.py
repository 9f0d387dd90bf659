"""The plan of a topology under the options that a door was given: what of them goes into its configuration.

Options win over ``config`` (JSON or a file), which wins over ``Topology.config``; a component's own config stays on top
for that component. Engine keys, the other keys that Storm has and the keys that the topology's components declare (a
class attribute ``Options``) go into the plan's configuration, and so do ``path`` and ``failOnDataLoss``:
``initialize(conf, context)`` sees them, on the driver and in the tasks.
"""

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pystorm_source.errors import OptionError
from pystorm_source.journal.options import JournalOptions
from pystorm_source.options import (
    EngineOptions,
    Options,
    SourceOptions,
    check_known,
    declared_by,
    family_of,
    fields_of,
    parse,
    shown,
)
from pystorm_source.options.presets import preset_file, preset_names
from pystorm_source.options.storm_keys import STORM_KEYS
from pystorm_source.plan import Plan, check_meetings
from pystorm_source.plan.unread_par import refuse_unread_par
from pystorm_source.types.json_values import json_copy, json_of

# Options that Spark itself adds for tables made by CREATE TABLE ... USING.
_SPARKS_OWN = re.compile(
    r"provider|owner|location|external|is_managed_location|comment|collation|option\..*", re.IGNORECASE
)


def option_texts(keywords: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, str]:
    """The options as Spark hands them on; keys as they were typed, which Spark does not keep.

    Raises OptionError for a key that is in both.
    """
    named = {key.lower() for key in keywords}
    for key, value in options.items():
        if key.lower() in named:
            raise OptionError(
                f"option {key!r} is given as a keyword and in `options`: keep one. Given: {shown(key, value)}",
                code="PYSTORM_OPTIONS_CONFLICT",
            )
    texts = {}
    for key, value in [*keywords.items(), *options.items()]:
        if isinstance(value, (dict, list)):
            texts[key] = json.dumps(value)
        elif value is not None:
            texts[key] = str(value).lower() if isinstance(value, bool) else str(value)
    return texts


def config_of(text: str) -> dict[str, Any]:
    """Reads ``config``: a JSON object, a preset, or the path of a file. Messages do not repeat its content."""
    import yaml  # here: tasks import this module too, read no file, and would begin 13 ms later

    if not text.strip():
        return {}
    path = None if text.lstrip().startswith("{") else preset_file(text) or Path(text)
    shown = f"{len(text)} characters of JSON" if path is None else repr(text)
    if path is not None and path.suffix.lower() not in (".yaml", ".yml", ".json"):
        raise OptionError(
            "option 'config' is a JSON object or the path of a .yaml or .json file, or a preset: "
            f"{' or '.join(preset_names())}. Given: {shown}",
            code="PYSTORM_INVALID_OPTION",
        )
    try:
        content = text if path is None else path.read_text(encoding="utf-8")
        is_json = path is None or path.suffix.lower() == ".json"
        config = json_of(content) if is_json else yaml.safe_load(content)
    except OSError as error:
        raise OptionError(
            f"option 'config': the file cannot be read on the driver ({error.strerror}, working folder {Path.cwd()}). "
            f"Given: {shown}",
            code="PYSTORM_INVALID_OPTION",
        ) from None
    except json.JSONDecodeError as error:
        where = f"{error.msg} in line {error.lineno}, column {error.colno}"
        raise OptionError(
            f"option 'config' is no JSON: {where}. Given: {shown}", code="PYSTORM_INVALID_OPTION"
        ) from None
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{getattr(error, 'problem', error)}{f' in line {mark.line + 1}' if mark else ''}"
        raise OptionError(
            f"option 'config' is no YAML: {where}. Given: {shown}", code="PYSTORM_INVALID_OPTION"
        ) from None
    if not isinstance(config, dict) or not all(isinstance(key, str) for key in config):
        raise OptionError(
            f"option 'config' holds one object of keys and values. Given: {shown}", code="PYSTORM_INVALID_OPTION"
        )
    try:
        return dict(json_copy(config))
    except (TypeError, ValueError) as error:
        raise OptionError(
            f"option 'config' holds JSON values only: {error}. Given: {sorted(config)!r}", code="PYSTORM_INVALID_OPTION"
        ) from None


def with_options(plan: Plan, config: Mapping[str, Any], given: Mapping[str, str], options: SourceOptions) -> Plan:
    """The plan under ``config``, which ``config_of`` has read, and under the options of its engine and components.

    Raises OptionError for an unknown key.
    """
    conf = conf_given(given, options, (component.cls for component in plan.components))
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
    """The plan of the environment that it names, checked, and what ``_declared`` finds in it. ``is_cut``: it will be
    cut where spouts must meet.

    Raises OptionError or TopologyError.
    """
    plan = plan.in_environment(plan.options.environment)
    plan.check_dead_letters()
    if not is_cut:
        check_meetings(plan)
    return plan, _declared(plan)


def conf_given(given: Mapping[str, str], options: SourceOptions, components: Iterable[type]) -> dict[str, Any]:
    """The options' part of the topology's configuration, in the spelling of the tables.

    Raises OptionError for an unknown key.
    """
    tables = dict.fromkeys(table for component in components for table in declared_by(component))
    known: tuple[type[Options], ...] = (EngineOptions, JournalOptions, *tables)
    keys = {key.lower(): key for key in STORM_KEYS}
    keys |= {key.lower(): key for table in known for key in fields_of(table)}
    check_known(without_sparks_own(given), (SourceOptions, *known), STORM_KEYS)
    conf: dict[str, Any] = {keys[key.lower()]: value for key, value in given.items() if key.lower() in keys}
    conf |= {key.lower(): value for key, value in given.items() if family_of(key, keys.values())}
    if options.path:
        conf["path"] = options.path
    conf["failOnDataLoss"] = options.fail_on_data_loss
    return conf


def without_sparks_own(given: Mapping[str, str]) -> list[str]:
    """The keys but for those that Spark adds for tables."""
    return [key for key in given if not _SPARKS_OWN.fullmatch(key)]


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
