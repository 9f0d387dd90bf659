"""The shipped dashboard: each of its expressions has an answer when Prometheus scrapes a query."""

import json

import pytest
from msgspec.structs import replace

from pystorm_source.observe import Prometheus
from pystorm_source.observe.metric_definitions import DEFINITIONS
from tests.observe.prometheus_server import DASHBOARD, eventually, prometheus_server
from tests.observe.promql import names_in
from tests.records.samples import progress

PANELS = [panel for panel in json.loads(DASHBOARD.read_text())["panels"] if panel["type"] != "row"]
EXPRESSIONS = [target["expr"] for panel in PANELS for target in panel["targets"]]
VARIABLES = {"$query": ".*", "$run": ".*", "$__rate_interval": "5s", "$__range": "5s"}


def filled(expression):
    """As Grafana sends it."""
    for name, value in VARIABLES.items():
        expression = expression.replace(name, value).replace(f"[{name}]", f"[{value}]")
    assert "$" not in expression
    return expression


def test_every_metric_of_the_dashboard_is_there():
    named = names_in(" ".join(EXPRESSIONS))
    assert named
    assert named <= {definition.sample_name for definition in DEFINITIONS.values()}


def test_panels_do_not_lie_on_each_other():
    taken = set()
    for panel in PANELS:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
    assert len({panel["id"] for panel in PANELS}) == len(PANELS)


@pytest.mark.timeout(150)
def test_every_expression_has_an_answer(tmp_path):
    metrics = Prometheus(port=0)
    batches = iter(range(10_000))

    def next_record():
        record = progress(next(batches))
        metrics(replace(record, tasks=replace(record.tasks, reports_dropped={"too long": 1})))

    def asked(server):
        next_record()
        return all(server.query(filled(expression)) for expression in EXPRESSIONS)

    try:
        next_record()
        with prometheus_server(tmp_path, metrics.port) as server:
            eventually(lambda: asked(server), 60)
    finally:
        metrics.close()
