"""The runner's end of the way back: when it listens, what it says if it cannot, what becomes of reports."""

import os
import socket
import subprocess
import sys
import threading
from contextlib import closing

import pytest

from pystorm_source.channel.client import RunnerClient
from pystorm_source.channel.reports.receiver import ReportReceiver
from pystorm_source.clock import ManualClock
from pystorm_source.errors import OptionError
from pystorm_source.options import SourceOptions, parse
from tests.channel.reports.made_reports import body, wait_until

pytestmark = pytest.mark.timeout(60)

LOCAL = ["java", "--master", "local[2]"]


@pytest.fixture
def feedback():
    made = []

    def make(command=LOCAL, here=True, clock=None, **options):
        options = {key.replace("_", "."): value for key, value in options.items()}
        made.append(ReportReceiver(parse(SourceOptions, options), clock, here, command))
        return made[-1]

    yield make
    for each in made:
        each.close()


def listening():
    return sum(thread.name == "pystorm-feedback" for thread in threading.enumerate())


def test_a_ticket_leads_reports_to_where_they_are_taken(feedback):
    here = feedback()
    assert listening() == 0
    assert not here.on
    assert here.take() == []
    endpoint = here.endpoint()
    assert here.endpoint() is endpoint
    assert here.on
    assert listening() == 1
    assert endpoint.host == "127.0.0.1"
    assert len(endpoint.token) == 32
    assert RunnerClient(endpoint.runner(None)).reports.send(body(rows=3), 20.0)
    found = []
    wait_until(lambda: found.extend(here.take()) or found)
    assert found[0].rows == 3
    assert here.dropped == {}


def test_every_reader_has_a_token_and_a_port_of_its_own(feedback):
    one, two = feedback().endpoint(), feedback().endpoint()
    assert one.token != two.token
    assert one.port != two.port


def test_on_a_cluster_tasks_are_sent_to_where_spark_says_that_the_driver_is(feedback):
    endpoint = feedback(command=["java", "--master", "yarn"]).endpoint()
    assert endpoint.host == ""
    assert RunnerClient(endpoint.runner("127.0.0.1")).reports.send(body(), 20.0)


def test_off_means_no_socket_and_no_thread(feedback):
    here = feedback(feedback="off")
    assert here.endpoint() is None
    assert not here.on
    assert listening() == 0


def test_outside_of_the_runner_nothing_listens(feedback):
    here = feedback(here=None)
    assert here.endpoint() is None
    code = (
        "from pystorm_source.options import SourceOptions\n"
        "from pystorm_source.channel.reports.receiver import ReportReceiver\n"
        "f = ReportReceiver(SourceOptions()); print(f.endpoint() is not None); f.close()"
    )
    runner = "python_streaming_source_runner"
    for word, answer in (("a_worker", "False"), (runner, "True")):
        run = [sys.executable, "-c", code, word]
        assert subprocess.run(run, capture_output=True, text=True, check=True).stdout.strip() == answer


def test_after_close_there_is_no_ticket(feedback):
    here = feedback()
    runner = here.endpoint().runner(None)
    here.close()
    here.close()
    assert here.endpoint() is None
    assert here.take() == []
    assert not RunnerClient(runner).reports.send(body(), 20.0)


def test_where_the_server_has_ended_by_an_error_another_one_begins(feedback, caplog):
    clock = ManualClock()
    here = feedback(clock=clock)
    first = here.endpoint()

    def breaks():
        raise MemoryError

    here._server._connections._accept = here._server._connections._seconds_left = breaks
    RunnerClient(first.runner(None)).reports.send(body(), 0.0)
    wait_until(lambda: listening() == 0)
    assert "reports of tasks are not received any more" in caplog.text
    assert here.endpoint() is None, "not at every trigger"
    clock.advance(10.0)
    second = here.endpoint()
    assert second.token != first.token
    assert RunnerClient(second.runner(None)).reports.send(body(), 20.0)
    assert here.endpoint() is second


def test_a_port_that_is_taken_is_said_once_and_tried_again(feedback, caplog):
    clock = ManualClock(1000.0)
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        here = feedback(clock=clock, feedback_port=str(port))
        for seconds in (0.0, 1.0, 10.0, 25.0, 1000.0):
            clock.advance(seconds)
            assert here.endpoint() is None
        assert here.take() == []
        assert here.dropped == {}
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "in use" in caplog.text
    assert f"Given: feedback.host='', feedback.port={port}" in caplog.text
    assert here.endpoint() is None, "not at every trigger"
    clock.advance(600.0)
    assert here.endpoint().port == port


def test_a_host_that_is_nobodys_is_said_and_nothing_is_opened_instead(feedback, caplog):
    assert feedback(feedback_host="no-such-host.invalid").endpoint() is None
    assert "feedback.host='no-such-host.invalid'" in caplog.text


def test_a_host_that_is_another_machines_stands_for_this_one(feedback):
    """As a gateway's address, or that of a service of Kubernetes."""
    endpoint = feedback(feedback_host="198.51.100.1").endpoint()
    assert endpoint.host == "198.51.100.1"
    with closing(socket.create_connection(("127.0.0.1", endpoint.port))) as caller:
        assert caller.recv(8) == b"pystorm1"


@pytest.mark.skipif(
    not hasattr(os, "getuid") or os.getuid() == 0, reason="a process that may listen everywhere is refused nowhere"
)
def test_a_port_that_is_forbidden_is_no_error(feedback, caplog):
    assert feedback(feedback_port="1").endpoint() is None
    assert "ermission denied" in caplog.text


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("feedback", "on"),
        ("feedback.port", "-1"),
        ("feedback.port", "65536"),
        ("feedback.port", "http"),
        ("feedback.host", "http://driver"),
        ("feedback.host", "driver:4040"),
        ("feedback.host", "a driver"),
        ("feedback.host", "driver/"),
        ("feedback.host", "-x"),
        ("feedback.host", "[::1]"),
        ("feedback.host", "x" * 64),
    ],
)
def test_wrong_options_are_named(key, value):
    with pytest.raises(OptionError, match=f"option '{key}'.*Given: '{value}'".replace("[", r"\[").replace("]", r"\]")):
        parse(SourceOptions, {key: value})


@pytest.mark.parametrize("host", ["", "driver", "driver-0.svc.cluster.local", "10.0.0.5", "::1", "fe80::1%eth0", "a_b"])
def test_right_hosts_are_taken(host):
    assert parse(SourceOptions, {"feedback.host": host}).feedback_host == host
