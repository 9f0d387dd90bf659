"""Metrics as OpenTelemetry's readers read them."""

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, Sum

from pystorm_source.observe import OpenTelemetry
from pystorm_source.observe.metric_definitions import DEFINITIONS
from tests.records.samples import progress


@pytest.fixture
def reader():
    return InMemoryMetricReader()


@pytest.fixture
def metrics(reader):
    provider = MeterProvider([reader])
    yield OpenTelemetry(provider)
    provider.shutdown()


def read(reader):
    data = reader.get_metrics_data()
    if data is None:
        return {}
    scopes = [scope for each in data.resource_metrics for scope in each.scope_metrics]
    return {metric.name: metric for scope in scopes for metric in scope.metrics}


def test_it_has_the_metrics_that_prometheus_has(metrics, reader):
    metrics(progress())
    found = read(reader)
    assert {name.removeprefix("pystorm.") for name in found} == DEFINITIONS.keys() - {"reports_dropped"}
    for name, metric in found.items():
        is_counter = DEFINITIONS[name.removeprefix("pystorm.")].kind == "counter"
        assert isinstance(metric.data, Sum) is is_counter
        assert not is_counter or metric.data.is_monotonic


def test_labels_are_attributes(metrics, reader):
    metrics(progress())
    points = read(reader)["pystorm.emit_count"].data.data_points
    (point,) = [each for each in points if each.attributes["component"] == "bolt1"]
    assert point.attributes == {
        "query": "sample", "run": "a3b4", "topology": "Sample", "component": "bolt1", "stream": "default",
    }  # fmt: skip
    assert point.value == progress().topology.component("bolt1").total.emitted


def test_durations_are_seconds_and_the_rest_has_no_unit(metrics, reader):
    metrics(progress())
    found = read(reader)
    assert found["pystorm.execute_latency"].unit == "s"
    assert found["pystorm.capacity"].unit == ""


def test_a_query_that_has_ended_has_counters_alone(metrics, reader):
    metrics(progress())
    metrics.query_ended("a3b4")
    assert all(isinstance(metric.data, Sum) for metric in read(reader).values())
