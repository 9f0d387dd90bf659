"""Prints the option tables: ``conf/defaults.yaml``, ``options/typed.py`` and ``docs/OPTIONS.md`` come from here;
``docs/COMMANDS.md``, from ``command_page``; the tables of COUNTERS.md and METRICS.md, from ``counter_page``.

``python -m docs.option_pages --write`` writes them; ``yaml``, ``typed`` or ``markdown`` prints one.
"""

import argparse
import json
import re
import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from docs import command_page, counter_page
from pystorm_source import spouts
from pystorm_source.journal.options import JournalOptions
from pystorm_source.options import EngineOptions, Options, SourceOptions, declared_by, fields_of, meaning_of
from pystorm_source.options.accepted import bounds_of, type_of
from pystorm_source.options.storm_keys import STORM_KEYS
from pystorm_source.options.storm_replacements import REPLACEMENTS, replacement_of

PAGES = {
    "pystorm_source/conf/defaults.yaml": "yaml",
    "pystorm_source/options/typed.py": "typed",
    "docs/OPTIONS.md": "markdown",
    "docs/COMMANDS.md": "commands",
    "docs/COUNTERS.md": "counters",
    "docs/METRICS.md": "metrics",
}
TABLES: tuple[type[Options], ...] = (SourceOptions, EngineOptions, JournalOptions)
GENERATED = "Printed by `python -m docs.option_pages --write`; change `pystorm_source/options/` instead."


class Section(NamedTuple):
    """Keys that are shown together: a heading, where they are set, and key → field."""

    title: str
    how: str
    fields: Mapping[str, msgspec.structs.FieldInfo]

    @classmethod
    def of(cls, title: str, how: str, table: type[Options]) -> "Section":
        """What a table has beyond the common keys, which stand before it, and the further ones, which stand behind."""
        apart = {*table.common, *table.further}
        return cls(title, how, {key: field for key, field in fields_of(table).items() if key not in apart})


def sections() -> list[Section]:
    """The common keys, then those of the source and the engine, those of the ready-made spouts by name, the further."""
    found = [
        Section(
            "Common",
            "What most jobs set, as options of the reader; `topology.*` also in the `config` option or "
            "`Topology.config`.",
            {key: fields_of(table)[key] for table in TABLES for key in table.common},
        ),
        Section.of(
            "Source", 'Options of the reader: `spark.readStream.format("pystorm").option(key, value)`.', SourceOptions
        ),
        Section.of(
            "Engine",
            "Options of the reader, keys of the `config` option or of `Topology.config`. The first of these wins.",
            EngineOptions,
        ),
        Section.of(
            "Journal",
            "Options of the reader or keys of `config`, for all spouts without offsets.",
            JournalOptions,
        ),
    ]
    tables = of_spouts()
    for table, names in tables.items():
        section = Section.of(", ".join(names), "", table)
        if table.__base__ in tables:
            own = {key: field for key, field in section.fields.items() if key not in fields_of(table.__base__)}
            section = Section(section.title, f"All options of {tables[table.__base__][0]} apply, too.", own)
        found.append(_without_repeats(section, found))
    found.append(
        Section(
            "Further keys",
            "Few jobs need these. Set them like the keys above.",
            {key: fields_of(table)[key] for table in (*TABLES, *of_spouts()) for key in table.further},
        )
    )
    return found


def _without_repeats(section: Section, before: Iterable[Section]) -> Section:
    """Without the keys that an earlier section describes in the same words; names that section instead."""
    described = {(key, meaning_of(field)): each for each in before for key, field in each.fields.items()}
    own = dict[str, msgspec.structs.FieldInfo]()
    repeated = dict[str, list[str]]()
    for key, field in section.fields.items():
        earlier = described.get((key, meaning_of(field)))
        if earlier is None:
            own[key] = field
        elif earlier.title != "Common":
            repeated.setdefault(earlier.title, []).append(f"`{key}`")
    also = [f"Also {', '.join(keys)}, as for {title}." for title, keys in repeated.items()]
    return Section(section.title, " ".join([*filter(None, [section.how]), *also]), own)


def of_spouts() -> dict[type[Options], list[str]]:
    """Table → the ready-made spouts that have it."""
    named: dict[type[Options], list[str]] = {}
    for name in sorted(spouts.__all__):
        for table in declared_by(getattr(spouts, name)):
            named.setdefault(table, []).append(name)
    return named


def yaml() -> str:
    """Every key once with its default, one line of meaning above; keys that are needed stand in a comment."""
    shown: set[str] = set()
    lines = ["# Every option with its default.", f"# {GENERATED.replace('`', '')}"]
    for section in sections():
        how = section.how.replace("`", "")
        lines += ["", f"# --- {section.title}{how and f': {how}'}"]
        for key, field in section.fields.items():
            if key in shown:
                continue
            shown.add(key)
            facts = ", ".join(fact for fact in (type_of(field), bounds_of(field)) if fact)
            lines += ["", f"# {meaning_of(field)} ({facts})"]
            absent = "needed" if field.required else "any keys of this family" if key.endswith(".*") else None
            lines.append(f"# {key}: {absent}" if absent else f"{key}: {json.dumps(field.default)}")
    return "\n".join(lines) + "\n"


def markdown() -> str:
    """One table per section: key, value with its default, meaning."""
    lines = ["# Options", "", f"<!-- {GENERATED} -->", ""]
    lines += [
        "Look up each option. Keys are not case-sensitive. A wrong key or value is refused when the query loads, with",
        "an error that names a remedy.",
        "",
        "Set the keys of a spout as options of the reader, in the config of the topology, or for one spout:",
        "`FilesSpout.spec(config={...})`. [Further keys](#further-keys) has more keys of spouts.",
        "An empty column *value* means a text without a default.",
        "",
    ]
    for section in sections():
        lines += [f"## {section.title}", "", *([section.how, ""] if section.how else [])]
        if section.fields:
            lines += ["| key | value, `default` | meaning |", "|---|---|---|"]
            lines += [*_rows(section.fields), ""]
        else:
            lines += ["All keys of this spout are among the [further keys](#further-keys).", ""]
    lines += _without_effect()
    return "\n".join(lines)


def _rows(fields: Mapping[str, msgspec.structs.FieldInfo]) -> Iterator[str]:
    """A row per key, or per group of keys that differ in one word only."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for key, field in fields.items():
        groups.setdefault((_TWIN.sub("…", key), _value_of(field), meaning_of(field)), []).append(f"`{key}`")
    for (_, value, meaning), keys in groups.items():
        cells = (cell.replace("|", "\\|") for cell in (", ".join(keys), value, meaning))
        yield f"| {' | '.join(cells)} |"


_TWIN = re.compile(r"\b(?:spout|bolt|backpressure)(?=\.wait\.)|^(?:key|value)(?=\.)")
"""The word that differs between keys of the same meaning."""


def _value_of(field: msgspec.structs.FieldInfo) -> str:
    """Choices, or type and bounds, with the default as code; a text has no type."""
    kind = type_of(field).removesuffix(" or nothing").removeprefix(", ")
    default = None if field.default in (None, "") or field.required else _plain(field.default)
    if kind == "bool":
        kind = "true, false"
    if default in (choices := kind.split(", ")):
        return ", ".join(f"`{choice}`" if choice == default else choice for choice in choices)
    bounds = bounds_of(field).replace(" … ", "-").replace("at least ", "from ")
    facts = " ".join(filter(None, ["" if kind == "text" else kind, bounds]))
    return "; ".join(filter(None, ["needed" if field.required else "", default and f"`{default}`", facts]))


def _plain(default: Any) -> str:
    return default if isinstance(default, str) else json.dumps(default)


def _without_effect() -> Iterator[str]:
    yield from (
        "## Keys of Storm without effect",
        "",
        "These keys of Storm are ignored. `pystorm-source check` and the log of a starting query name the keys",
        "that are set. `topology.lint.off=key-without-effect` turns this off.",
        "",
        "| keys | instead |",
        "|---|---|",
    )
    idle = sorted(key for key in STORM_KEYS if key not in fields_of(EngineOptions))
    for instead in (each.instead for each in REPLACEMENTS):
        keys = (f"`{key}`" for key in idle if replacement_of(key) == instead)
        yield f"| {', '.join(keys)} | {instead} |"


def typed() -> str:
    """A module with a type of the keyword arguments of ``read_stream``: key → type of its values."""
    hints: dict[str, dict[str, None]] = {}
    for table in (*TABLES, *of_spouts()):
        for key, field in fields_of(table).items():
            if not key.endswith(".*") and key != "topology":  # which is an argument of its own
                hints.setdefault(key, {}).update(dict.fromkeys(_hints(field.type)))
                hints[key].update(dict.fromkeys(("dict[str, Any]",) if key in table.takes_json else ()))
    rows = (f'        "{key}": {_union(found)},' for key, found in sorted(hints.items()))
    return f'''"""The keyword arguments of ``read_stream`` and ``read``, for editors and type checkers.

{GENERATED}
"""

from typing import Any, Literal, TypedDict

ReadOptions = TypedDict(
    "ReadOptions",
    {{
{chr(10).join(rows)}
    }},
    total=False,
)
"""Key → value; None is left out. Keys of a family, such as ``kafka.*``, and keys of your own spouts are missing here:
pass them in ``read_stream(..., options={{...}})``."""

__all__ = ["ReadOptions"]
'''


def commands() -> str:
    """The commands with their flags."""
    return command_page.commands()


def counters() -> str:
    """The counts of a worker, and what of them a task reports."""
    return counter_page.counters()


def metrics() -> str:
    """The metrics of Prometheus and OpenTelemetry."""
    return counter_page.metrics()


def _union(hints: Iterable[str]) -> str:
    """These or None; the words of all spouts that have the key are one literal."""
    words = [each for each in hints if each.startswith('"')]
    literal = [f"Literal[{', '.join(words)}]"] if words else []
    return " | ".join([*literal, *(each for each in hints if each not in words), "None"])


def _hints(hint: Any) -> Iterator[str]:
    """As it stands in a source, without None; the words of a literal one by one."""
    origin = typing.get_origin(hint)
    if origin is Annotated:
        yield from _hints(typing.get_args(hint)[0])
    elif origin is Literal:
        yield from map(json.dumps, typing.get_args(hint))
    elif origin in (typing.Union, types.UnionType):
        for part in typing.get_args(hint):
            yield from _hints(part)
    elif hint is not type(None):
        yield hint.__name__


def main() -> None:
    """The command line of this module."""
    parser = argparse.ArgumentParser(prog="python -m docs.option_pages", description="Prints the option tables.")
    parser.add_argument("page", nargs="?", choices=sorted(PAGES.values()), help="print this one")
    parser.add_argument("--write", action="store_true", help=f"write {' and '.join(PAGES)} in this checkout")
    asked = parser.parse_args()
    if asked.write:
        root = Path(__file__).resolve().parents[1]
        for path, page in PAGES.items():
            (root / path).parent.mkdir(exist_ok=True)
            (root / path).write_text(globals()[page](), encoding="utf-8")
    elif asked.page:
        print(globals()[asked.page](), end="")
    else:
        parser.error("name a page, or --write")


if __name__ == "__main__":
    main()
