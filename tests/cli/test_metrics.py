"""``pystorm-source metrics``."""

import json

import yaml
from typer.testing import CliRunner

from pystorm_source.cli.main import app


def metrics(*arguments):
    return CliRunner().invoke(app, ["metrics", *arguments])


def test_the_dashboard_is_printed_as_json():
    assert json.loads(metrics("dashboard").stdout)["title"] == "pystorm source"


def test_the_alerts_are_printed_as_yaml():
    (group,) = yaml.safe_load(metrics("alerts").stdout)["groups"]
    assert [rule["alert"] for rule in group["rules"]] == [
        "PystormBacklogGrows", "PystormBottleneck", "PystormDeadLetters", "PystormNoProgress",
    ]  # fmt: skip


def test_something_else_is_refused():
    assert metrics("everything").exit_code == 2
