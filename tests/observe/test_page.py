"""docs/METRICS.md names every metric, with its labels and Storm's name."""

import yaml

from pystorm_source.observe.metric_definitions import OF_COMPONENTS, OF_QUERIES, Definition
from tests.docs.pages import ROOT, blocks
from tests.observe.prometheus_server import ALERTS

PAGE = ROOT / "docs/METRICS.md"


def table(definitions: tuple[Definition, ...]) -> str:
    """As the page has it."""
    storm = any(definition.storm for definition in definitions)
    head = ["metric", "kind", "labels", "meaning", *(["Storm"] if storm else [])]
    rows = [head]
    for each in definitions:
        labels = ", ".join(f"`{label}`" for label in each.labels if label != "component" or not storm)
        last = [f"`{each.storm}`" if each.storm else ""] if storm else []
        rows.append([f"`{each.sample_name}`", each.kind, labels, each.meaning, *last])
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines).replace("|  |", "| |")


def test_the_tables_are_those_of_the_definitions():
    text = PAGE.read_text()
    for definitions in (OF_COMPONENTS, OF_QUERIES):
        assert table(definitions) in text, f"docs/METRICS.md: put this table there\n{table(definitions)}"


def test_the_alerts_are_named():
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    assert all(f"| `{rule['alert']}` |" in PAGE.read_text() for rule in group["rules"])


def test_the_configuration_of_prometheus_is_read_by_it():
    (block,) = blocks(PAGE, "yaml")
    assert set(yaml.safe_load(block.text)) == {"scrape_configs", "rule_files"}
