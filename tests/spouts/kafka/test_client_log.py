"""Lines of librdkafka that repeat: which are logged, by a clock of the test; and those of a closed port."""

import itertools
import logging
import socket

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.errors import WorldError
from pystorm_source.spouts import KafkaSpout
from pystorm_source.spouts.kafka.client_log import FIRST_SECONDS, LONGEST_SECONDS, MOST_KINDS, ClientLog
from pystorm_source.testing.driven import Driven

FORMAT = "%s [%s] %s"


@pytest.fixture
def logged(caplog):
    clock = ManualClock()
    log = ClientLog(logging.getLogger("pystorm.component.lines"), clock)

    def attempt(port, after=0, fault="Connection refused"):
        text = f"[thrd:host:{port}/1]: host:{port}/1: Connect failed: {fault} (after {after}ms)"
        log.log(logging.ERROR, FORMAT, "FAIL", "rdkafka#producer-1", text)

    return clock, attempt, caplog


def test_a_broker_that_is_away_is_one_line_in_ten_seconds_then_fewer(logged):
    clock, attempt, caplog = logged
    times = []
    for tick in range(20 * 300):  # 20 attempts a second, 5 minutes
        clock.now = tick / 20
        attempt(9, after=tick)
        if len(caplog.records) > len(times):
            times.append(clock.now)
    assert times == [0, 10, 30, 70, 150, 230]
    assert caplog.messages[1].endswith("(and 199 like it in the meantime)")
    assert all(b - a >= FIRST_SECONDS for a, b in itertools.pairwise(times))


def test_each_broker_and_each_fault_has_its_line(logged):
    _, attempt, caplog = logged
    for _ in range(50):
        attempt(9)
        attempt(10)
        attempt(9, fault="No route to host")
    assert len(caplog.records) == 3


def test_a_fault_that_comes_back_after_a_quiet_time_is_said_at_once(logged):
    clock, attempt, caplog = logged
    attempt(9)
    clock.advance(10 * LONGEST_SECONDS)
    attempt(9)
    clock.advance(FIRST_SECONDS)
    attempt(9)
    assert len(caplog.records) == 3


def test_kinds_are_bounded(logged):
    _, attempt, caplog = logged
    for port in range(3 * MOST_KINDS):
        attempt(port)
    attempt(3 * MOST_KINDS - 1)
    assert len(caplog.records) == 3 * MOST_KINDS


def test_a_port_where_nobody_listens_is_few_lines_before_the_error(caplog):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, never listening
        server = f"127.0.0.1:{taken.getsockname()[1]}"
        options = {"fetchOffset.numRetries": 1, "fetchOffset.retryIntervalMs": 10, "kafka.default.api.timeout.ms": 2000}
        driven = Driven(KafkaSpout.spec(), {"kafka.bootstrap.servers": server, "subscribe": "x", **options})
        with pytest.raises(WorldError, match="PYSTORM_KAFKA_UNREACHABLE"):
            driven.driver.snapshot({}, {})
    refused = [text for text in caplog.messages if "FAIL" in text]
    assert 1 <= len(refused) <= 2 and len(caplog.messages) <= 12
