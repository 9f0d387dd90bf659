"""Prints the tables of counts and metrics in ``docs/COUNTERS.md`` and ``docs/METRICS.md`` from their definitions.

``docs.option_pages`` writes the pages. Everything but the tables after ``<!-- table: NAME -->`` is written by hand.
"""

import inspect
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from pystorm_source.observe.metric_definitions import OF_COMPONENTS, OF_QUERIES, Definition
from pystorm_source.records.counts import ROWS, Count, Counts, TaskCounts

_ATTRIBUTES = f"{inspect.getdoc(Counts)}\n{inspect.getdoc(TaskCounts)}\n"
ROOT = Path(__file__).resolve().parents[1]


def counters() -> str:
    """docs/COUNTERS.md."""
    return _filled(
        "docs/COUNTERS.md",
        {
            "counts": _table(
                ["count", "meaning"],
                ([f"`{name}`", _meaning(name, row)] for name, row in ROWS.items()),
            )
        },
    )


def metrics() -> str:
    """docs/METRICS.md."""
    return _filled("docs/METRICS.md", {"components": _metrics(OF_COMPONENTS), "queries": _metrics(OF_QUERIES)})


def _meaning(name: str, row: Count) -> str:
    """Unit and meaning of the row, then the sentence in the docstring of its class."""
    said = re.search(rf"^    {name} \(\w+\): (.*\n(?: {{8}}.*\n)*)", _ATTRIBUTES, re.MULTILINE)
    more = " ".join(said[1].split()).replace("``", "`") if said else ""
    if not row.meaning:
        return f"{row.unit} {more}"
    return f"{row.text}. {more[:1].upper()}{more[1:]}" if more else row.text


def _metrics(definitions: Sequence[Definition]) -> str:
    storm = any(definition.storm for definition in definitions)
    rows = []
    for each in definitions:
        labels = ", ".join(f"`{label}`" for label in each.labels if label != "component" or not storm)
        last = [f"`{each.storm}`" if each.storm else ""] if storm else []
        rows.append([f"`{each.sample_name}`", labels, each.meaning, *last])
    return _table(["metric", "labels", "meaning", *(["Storm"] if storm else [])], rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines).replace("|  |", "| |")


def _filled(page: str, tables: dict[str, str]) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, table in tables.items():
        mark = f"<!-- table: {name} -->"
        whole = f"{mark}\n\n{table}\n".replace("\\", r"\\")  # or subn takes it for a group
        text, found = re.subn(rf"{mark}\n\n(?:\|.*\n)*", whole, text)
        assert found == 1, f"{page} has no line {mark}"
    return text
