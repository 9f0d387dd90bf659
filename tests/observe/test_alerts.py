"""The shipped alerts, evaluated by Debian's promtool over hours of made-up values."""

import json
import subprocess

import pytest

from pystorm_source.observe.metric_definitions import DEFINITIONS
from tests.observe.prometheus_server import ALERTS, program
from tests.observe.promql import names_in

QUERY = 'query="q",run="r",topology="T"'
RUNNING = {
    f"pystorm_last_progress_timestamp_seconds{{{QUERY}}}": "0+60x300",
    f"pystorm_batch_duration_seconds{{{QUERY}}}": "1x300",
    f"pystorm_backlog_offsets{{{QUERY}}}": "0x300",
    f'pystorm_bottleneck_capacity{{{QUERY},component="b",why="busy"}}': "0.5x300",
    f'pystorm_dead_letter_count_total{{{QUERY},component="b"}}': "0x300",
}
"""A value a minute, for five hours: a query that keeps up, with a micro-batch a minute."""


def series(metric):
    (found,) = [each for each in RUNNING if each.startswith(metric)]
    return found


def test_promtool_accepts_the_file():
    subprocess.run([program("promtool"), "check", "rules", ALERTS], check=True, capture_output=True)


def test_every_metric_of_the_alerts_is_there():
    named = names_in(ALERTS.read_text())
    assert named
    assert named <= {definition.sample_name for definition in DEFINITIONS.values()}


CASES = {
    "a query that keeps up": ({}, 60, set()),
    "a query that is idle": ({"pystorm_last_progress_timestamp_seconds": "3600x300"}, 240, set()),
    "a backlog that grows": ({"pystorm_backlog_offsets": "0+600x300"}, 60, {"PystormBacklogGrows"}),
    "a burst": ({"pystorm_backlog_offsets": "0x50 0+600x5 3000-600x5 0x200"}, 62, set()),
    "a backlog that is worked off": ({"pystorm_backlog_offsets": "90000-100x300"}, 60, set()),
    "a bottleneck": (
        {"pystorm_bottleneck_capacity": "0.95x300", "pystorm_backlog_offsets": "9x300"},
        60,
        {"PystormBottleneck"},
    ),
    "a busy component of a query that keeps up": ({"pystorm_bottleneck_capacity": "0.95x300"}, 60, set()),
    "a bottleneck for a moment": (
        {"pystorm_bottleneck_capacity": "0.5x57 0.95x2 0.5x200", "pystorm_backlog_offsets": "9x300"},
        60,
        set(),
    ),
    "a dead letter": ({"pystorm_dead_letter_count_total": "0x57 1x200"}, 60, {"PystormDeadLetters"}),
    "a dead letter of the first scrape": (
        {"pystorm_dead_letter_count_total": "_x57 1x200"},
        60,
        {"PystormDeadLetters"},
    ),
    "a dead letter of yesterday": ({"pystorm_dead_letter_count_total": "0x10 1x200"}, 60, set()),
    "a query that stands still": (
        {"pystorm_last_progress_timestamp_seconds": "0+60x50 3000x200", "pystorm_backlog_offsets": "9x300"},
        60,
        {"PystormNoProgress"},
    ),
    "a query with micro-batches of an hour": (
        {
            "pystorm_last_progress_timestamp_seconds": "0+60x50 3000x200",
            "pystorm_backlog_offsets": "9x300",
            "pystorm_batch_duration_seconds": "3600x300",
        },
        60,
        set(),
    ),
    "a query that has ended": (
        {
            "pystorm_last_progress_timestamp_seconds": "0+60x10 stale",
            "pystorm_backlog_offsets": "9x10 stale",
            "pystorm_bottleneck_capacity": "0.95x10 stale",
        },
        60,
        set(),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_alert_fires_when_it_should(case, tmp_path):
    changed, minute, expected = CASES[case]
    values = RUNNING | {series(metric): to for metric, to in changed.items()}
    fired = [{"eval_time": f"{minute}m", "alertname": name, "exp_alerts": []} for name in names() - expected]
    counted = [
        {"expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}})', "eval_time": f"{minute}m",
         "exp_samples": [{"value": 1}]}
        for name in expected
    ]  # fmt: skip
    inputs = [{"series": name, "values": to} for name, to in values.items()]
    test = {"interval": "1m", "input_series": inputs, "alert_rule_test": fired, "promql_expr_test": counted}
    suite = {"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": [test]}
    (tmp_path / "suite.json").write_text(json.dumps(suite))  # JSON is YAML
    done = subprocess.run(
        [program("promtool"), "test", "rules", tmp_path / "suite.json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def names():
    return {line.split(": ")[1] for line in ALERTS.read_text().splitlines() if line.strip().startswith("- alert: ")}
