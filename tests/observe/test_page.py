"""docs/METRICS.md: its alerts and its configuration. Its tables are printed."""

import yaml

from tests.docs.pages import ROOT, blocks
from tests.observe.prometheus_server import ALERTS

PAGE = ROOT / "docs/METRICS.md"


def test_the_alerts_are_named():
    (group,) = yaml.safe_load(ALERTS.read_text())["groups"]
    assert all(f"| `{rule['alert']}` |" in PAGE.read_text() for rule in group["rules"])


def test_the_configuration_of_prometheus_is_read_by_it():
    (block,) = blocks(PAGE, "yaml")
    assert set(yaml.safe_load(block.text)) == {"scrape_configs", "rule_files"}
