"""Reports leave a task's process, or they do not: no task waits for a runner that is slow or gone."""

import os
import socket
import threading
import time
from contextlib import closing, suppress

import pytest

from pystorm_source.channel import client as clients
from pystorm_source.channel.client import RunnerClient, client
from pystorm_source.channel.reports import link
from pystorm_source.channel.reports.connections import ServerLimits
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.protocol import GREETING_BYTES, MOST_BODY, greeting
from pystorm_source.channel.reports.sender import MOST_QUEUED
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.clock import ManualClock
from testbed.ports import free_port
from tests.channel.reports.made_reports import TOKEN, body, wait_until

pytestmark = pytest.mark.timeout(60)

LONG = 20.0


@pytest.fixture
def serve():
    servers = []

    def start(port=0, **limits):
        servers.append(ReportServer("127.0.0.1", port, TOKEN, ServerLimits(**limits)))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def runner_of(server):
    return Runner(*server.address, TOKEN)


def taken(server, count):
    found = []
    wait_until(lambda: found.extend(server.take()) or len(found) >= count, f"report {count}")
    return [each.rows for each in found]


@pytest.fixture
def silent():
    """A port where connections are accepted and nothing is ever said."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield Runner(*listener.getsockname(), TOKEN)


def test_reports_leave_at_once_over_one_connection(serve):
    server = serve(connections=1, unauthenticated=1)
    sender = RunnerClient(runner_of(server)).reports
    for n in range(20):
        assert sender.send(body(rows=n), LONG)
    assert taken(server, 20) == list(range(20))
    assert server.dropped == {}


def test_queries_of_one_process_have_a_connection_each_those_used_last(serve):
    servers = [serve() for _ in range(6)]
    threads = threading.active_count()
    for n in range(3):
        for server in servers:
            assert client(runner_of(server)).reports.send(body(rows=n), LONG)
    assert [taken(server, 3) for server in servers] == [[0, 1, 2]] * 6
    wait_until(lambda: threading.active_count() <= threads + 4)
    assert client(runner_of(servers[5])) is client(runner_of(servers[5]))


def test_a_silent_runner_costs_one_task_a_moment_and_the_next_ones_nothing(silent):
    sender = RunnerClient(silent).reports
    started = time.monotonic()
    assert not sender.send(body(), 0.05)
    assert time.monotonic() - started >= 0.05
    started = time.monotonic()
    for _ in range(100):
        assert not sender.send(body(), LONG)
    assert time.monotonic() - started < LONG / 2
    assert len(sender._queue) <= MOST_QUEUED


def test_a_silent_runner_does_not_hold_up_the_reports_to_others(serve, silent):
    server = serve()
    client(silent).reports.send(body(), 0.0)
    assert client(runner_of(server)).reports.send(body(), LONG)
    assert client(silent).reports._link._pause == 0.0, "it is still waited for"


@pytest.mark.parametrize("host", ["no-such-host.invalid", "127.0.0.1", "", "x" * 300, "a\0b", "\udc80"], ids=ascii)
def test_who_cannot_be_reached_is_tried_now_and_then(host):
    clock = ManualClock()
    sender = RunnerClient(Runner(host, free_port(), TOKEN), clock).reports
    link, tries = sender._link, []
    for seconds in (0.0, 0.5, 0.6, 1.0, 1.1, 3.9, 100.0):
        clock.advance(seconds)
        before = link._pause
        assert not link.send(body())
        tries.append(link._pause != before)
    assert tries == [True, False, True, False, True, False, True]
    assert not sender.send(body(), LONG)


def test_a_runner_that_was_restarted_is_found_again(serve):
    first, clock = serve(), ManualClock()
    sender = RunnerClient(runner_of(first), clock).reports
    assert sender.send(body(), LONG)
    first.close()
    assert not sender.send(body(), LONG)
    second = serve(port=first.address[1])
    clock.advance(1.0)
    sender.send(body(rows=7), 0.0)
    assert taken(second, 1) == [7]
    wait_until(lambda: sender._prompt)
    assert sender.send(body(rows=8), LONG), "waited for again"


def test_a_connection_that_the_runner_has_closed_is_opened_anew_without_loss(serve):
    server = serve(idle_seconds=0.05)
    sender = RunnerClient(runner_of(server)).reports
    for n in range(3):
        assert sender.send(body(rows=n), LONG)
        assert taken(server, 1) == [n]
        wait_until(lambda: not sender._link.is_open)


def test_an_impostor_gets_no_report(serve):
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        sender = RunnerClient(Runner(*listener.getsockname(), TOKEN)).reports
        sender.send(body(), 0.0)
        caller, _ = listener.accept()
        with closing(caller):
            caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\r\n"[:GREETING_BYTES])
            assert caller.recv(1) == b""


def test_a_greeting_that_drips_is_given_up(monkeypatch):
    monkeypatch.setattr(link, "_DEADLINE_SECONDS", 0.2)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        sender = RunnerClient(Runner(*listener.getsockname(), TOKEN)).reports
        sender.send(body(), 0.0)
        caller, _ = listener.accept()
        with closing(caller):
            dripped = 0
            with suppress(ConnectionError):
                for byte in greeting(b"n" * 32):
                    caller.sendall(bytes([byte]))
                    time.sleep(0.02)
                    dripped += 1
            assert dripped < 40


def test_a_report_that_is_too_long_is_none(serve):
    sender = RunnerClient(runner_of(serve())).reports
    assert not sender.send(b"x" * (MOST_BODY + 1), LONG)
    assert sender.send(body(), LONG), "it has done no harm"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_has_a_client_of_its_own(serve):
    server = serve()
    runner = runner_of(server)
    assert client(runner).reports.send(body(rows=0), LONG)
    child = os.fork()
    if child == 0:
        sent = client(runner).reports.send(body(rows=1), LONG)
        os._exit(0 if sent else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert client(runner).reports.send(body(rows=2), LONG), "the child has closed a copy only"
    assert sorted(taken(server, 3)) == [0, 1, 2]
    assert server.dropped == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_in_the_midst_of_sending_hangs_nobody(serve, silent):
    server = serve()
    client(silent).reports.send(body(), 0.0)
    children = []
    for n in range(10):
        child = os.fork()
        if child == 0:
            os._exit(0 if client(runner_of(server)).reports.send(body(rows=n), LONG) else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 10
    assert sorted(taken(server, 10)) == list(range(10))


def test_tasks_of_several_threads_share_the_client(serve):
    server = serve()
    shared = RunnerClient(runner_of(server)).reports
    senders = [threading.Thread(target=shared.send, args=(body(rows=n), LONG)) for n in range(10)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert sorted(taken(server, 10)) == list(range(10))


def test_the_token_is_in_no_log(caplog):
    caplog.set_level("DEBUG")
    sender = RunnerClient(Runner("127.0.0.1", free_port(), TOKEN)).reports
    assert not sender.send(body(), LONG)
    assert "a report did not leave for Runner(host='127.0.0.1'" in caplog.text
    assert TOKEN.decode() not in caplog.text + repr(sender) + repr(clients._clients)
