"""Metrics as Prometheus reads them."""

import re
import socket
import subprocess
import threading
import time
import urllib.request
from contextlib import suppress

import prometheus_client
import pytest
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from pystorm_source.errors import OptionError
from pystorm_source.observe import Prometheus
from pystorm_source.observe.metric_definitions import COMMON
from pystorm_source.observe.metrics_server import MOST_CONNECTIONS, start_server
from tests.observe.prometheus_server import program
from tests.records.samples import progress


@pytest.fixture
def served():
    metrics = Prometheus(port=0)
    yield metrics
    metrics.close()


def scrape(metrics):
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics.port}/metrics", timeout=10) as answer:
        return answer.read().decode()


def samples(text):
    """Name and labels but for those of the query → value."""
    return {
        (sample.name, *(value for name, value in sample.labels.items() if name not in COMMON)): (sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_storm_counts_has_storms_names(served):
    served(progress())
    found = samples(scrape(served))
    bolt = progress().topology.component("bolt1")
    assert found["pystorm_emit_count_total", "bolt1", "default"] == bolt.total.emitted
    assert found["pystorm_transfer_count_total", "bolt1", "default"] == bolt.total.transferred
    assert found["pystorm_execute_count_total", "bolt1"] == bolt.total.executed
    assert found["pystorm_ack_count_total", "bolt1"] == bolt.total.acked
    assert found["pystorm_fail_count_total", "bolt1"] == 3
    assert found["pystorm_execute_latency_seconds", "bolt1"] == pytest.approx(bolt.execute.mean)
    assert ("pystorm_complete_latency_seconds", "spout") in found
    assert found["pystorm_capacity", "bolt1"] == 0.97


def test_all_of_it_is_of_a_query(served):
    served(progress())
    lines = [line for line in scrape(served).splitlines() if not line.startswith("#")]
    assert lines
    for label in ('query="sample"', 'run="a3b4"', 'topology="Sample"'):
        assert all(label in line for line in lines)


def test_promtool_finds_nothing_wrong_with_it(served):
    served(progress())
    command = [program("promtool"), "check", "metrics"]
    checked = subprocess.run(command, input=scrape(served), text=True, capture_output=True)
    assert (checked.returncode, checked.stderr) == (0, "")


def test_names_of_components_are_data(served):
    record = progress(components=2)
    odd = 'a"} 1\nfake{b="\\'
    (spout, bolt) = record.topology.components
    served(replace(record, topology=replace(record.topology, components=(spout, replace(bolt, name=odd)))))
    assert ("pystorm_capacity", odd) in samples(scrape(served))
    assert not re.search("^fake", scrape(served), re.MULTILINE)


def test_a_query_that_has_ended_has_no_gauges(served):
    served(progress())
    served.query_ended("a3b4")
    found = {name for name, *_ in samples(scrape(served))}
    assert "pystorm_rows_total" in found
    assert "pystorm_backlog_offsets" not in found


def test_it_can_be_a_part_of_a_registry_that_is_served_elsewhere():
    registry = prometheus_client.CollectorRegistry()
    metrics = Prometheus(registry=registry)
    metrics(progress())
    assert metrics.port is None
    assert b"pystorm_rows_total" in prometheus_client.generate_latest(registry)
    metrics.close()
    assert prometheus_client.generate_latest(registry) == b""


def test_a_port_that_is_taken_is_refused(served):
    with pytest.raises(OptionError, match=rf"give another port, .* Given: 127.0.0.1:{served.port}"):
        Prometheus(port=served.port)


def test_partitions_and_micro_batches_are_no_labels(served):
    for batch in range(20):
        served(progress(batch, components=100, partitions=10_000))
    assert len(samples(scrape(served))) < 3_000


def refused(connection):
    """Blocking, until the server closes it."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def test_idle_connections_cost_no_thread_each_and_keep_no_scrape_out(served):
    served(progress())
    before = threading.active_count()
    idle = [socket.create_connection(("127.0.0.1", served.port), timeout=20) for _ in range(100)]
    try:
        assert "pystorm_capacity" in scrape(served)
        assert all(map(refused, idle[: 100 - MOST_CONNECTIONS]))
        while threading.active_count() > before + MOST_CONNECTIONS:
            time.sleep(0.01)
    finally:
        for each in idle:
            each.close()


def test_a_slow_connection_is_closed():
    server, thread = start_server(lambda environment, start: [], "127.0.0.1", 0, seconds=0.1)
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=20) as slow, suppress(ConnectionError):
        while True:  # until it is closed: pytest's deadline says that it is not
            slow.sendall(b"X")
            time.sleep(0.01)
    server.shutdown()
    server.server_close()
    thread.join(20)
