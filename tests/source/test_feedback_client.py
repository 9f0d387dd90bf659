"""Reports leave a task's process, or they do not: no task waits for a runner that is slow or gone."""

import gc
import os
import socket
import threading
import time
from contextlib import closing, suppress

import pytest

from pystorm_source.clock import ManualClock
from pystorm_source.source import feedback_client
from pystorm_source.source.feedback_address import Runner
from pystorm_source.source.feedback_client import MOST_QUEUED, FeedbackClient
from pystorm_source.source.feedback_protocol import GREETING_BYTES, MOST_BODY, greeting
from pystorm_source.source.feedback_server import FeedbackServer, ServerLimits
from tests.source.reports import TOKEN, body, wait_until

pytestmark = pytest.mark.timeout(60)

LONG = 20.0


@pytest.fixture
def serve():
    servers = []

    def start(port=0, **limits):
        servers.append(FeedbackServer("127.0.0.1", port, TOKEN, ServerLimits(**limits)))
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
def deaf():
    """A port where connections are accepted and nothing is ever said."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield Runner(*listener.getsockname(), TOKEN)


def free_port():
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        return listener.getsockname()[1]


def test_reports_leave_at_once_over_one_connection(serve):
    server, client = serve(connections=1, strangers=1), FeedbackClient()
    for n in range(20):
        assert client.send(runner_of(server), body(rows=n), LONG)
    assert taken(server, 20) == list(range(20))
    assert server.dropped == {}


def test_queries_of_one_process_have_a_connection_each(serve):
    client, servers = FeedbackClient(), [serve() for _ in range(6)]
    for n in range(3):
        for server in servers:
            assert client.send(runner_of(server), body(rows=n), LONG)
    assert [taken(server, 3) for server in servers] == [[0, 1, 2]] * 6
    assert len(client._links) == 4


def test_a_silent_runner_costs_one_task_a_moment_and_the_next_ones_nothing(deaf):
    client = FeedbackClient()
    started = time.monotonic()
    assert not client.send(deaf, body(), 0.05)
    assert time.monotonic() - started >= 0.05
    started = time.monotonic()
    for _ in range(100):
        assert not client.send(deaf, body(), LONG)
    assert time.monotonic() - started < LONG / 2
    assert len(client._queue) <= MOST_QUEUED


def test_a_silent_runner_holds_up_no_other_query_for_long(serve, deaf, monkeypatch):
    monkeypatch.setattr(feedback_client, "_DEADLINE_SECONDS", 0.2)
    server, client = serve(), FeedbackClient()
    client.send(deaf, body(), 0.0)
    assert client.send(runner_of(server), body(), LONG)


@pytest.mark.parametrize("host", ["no-such-host.invalid", "127.0.0.1", "", "x" * 300, "a\0b", "\udc80"], ids=ascii)
def test_who_cannot_be_reached_is_tried_now_and_then(host):
    clock = ManualClock()
    client, runner = FeedbackClient(clock), Runner(host, free_port(), TOKEN)
    tries = []
    for seconds in (0.0, 0.5, 0.6, 1.0, 1.1, 3.9, 100.0, 59.0, 1.1):
        clock.advance(seconds)
        parcel = feedback_client._Parcel(runner, body())
        before = client._link(runner)._pause
        assert not client._link(runner).send(parcel.body)
        tries.append(client._link(runner)._pause != before or before == 60.0)
    assert tries[:7] == [True, False, True, False, True, False, True]
    assert not client.send(runner, body(), LONG)


def test_a_runner_that_was_restarted_is_found_again(serve):
    first, clock = serve(), ManualClock()
    client, runner = FeedbackClient(clock), runner_of(first)
    assert client.send(runner, body(), LONG)
    first.close()
    assert not client.send(runner, body(), LONG)
    second = serve(port=first.address[1])
    clock.advance(1.0)
    client.send(runner, body(rows=7), LONG)
    assert taken(second, 1) == [7]
    wait_until(lambda: runner not in client._slow)
    assert client.send(runner, body(rows=8), LONG), "waited for again"


def test_a_connection_that_the_runner_has_closed_is_opened_anew_without_loss(serve):
    server, client = serve(quiet_seconds=0.05), FeedbackClient()
    for n in range(3):
        assert client.send(runner_of(server), body(rows=n), LONG)
        assert taken(server, 1) == [n]
        wait_until(lambda: not client._links[runner_of(server)]._is_open())


def test_an_impostor_gets_no_report(serve):
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        client, runner = FeedbackClient(), Runner(*listener.getsockname(), TOKEN)
        client.send(runner, body(), 0.0)
        caller, _ = listener.accept()
        with closing(caller):
            caller.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n\r\n"[:GREETING_BYTES])
            assert caller.recv(1) == b""


def test_a_greeting_that_drips_is_given_up(monkeypatch):
    monkeypatch.setattr(feedback_client, "_DEADLINE_SECONDS", 0.2)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        client, runner = FeedbackClient(), Runner(*listener.getsockname(), TOKEN)
        client.send(runner, body(), 0.0)
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
    server, client = serve(), FeedbackClient()
    assert not client.send(runner_of(server), b"x" * (MOST_BODY + 1), LONG)
    assert client.send(runner_of(server), body(), LONG), "it has done no harm"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_has_a_client_of_its_own(serve):
    server = serve()
    runner = runner_of(server)
    assert feedback_client.client().send(runner, body(rows=0), LONG)
    child = os.fork()
    if child == 0:
        sent = feedback_client.client().send(runner, body(rows=1), LONG)
        os._exit(0 if sent else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert feedback_client.client().send(runner, body(rows=2), LONG), "the child has closed a copy only"
    assert sorted(taken(server, 3)) == [0, 1, 2]
    assert server.dropped == {}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_in_the_midst_of_sending_hangs_nobody(serve, deaf):
    server = serve()
    feedback_client.client().send(deaf, body(), 0.0)
    children = []
    for n in range(10):
        child = os.fork()
        if child == 0:
            os._exit(0 if feedback_client.client().send(runner_of(server), body(rows=n), LONG) else 1)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 10
    assert sorted(taken(server, 10)) == list(range(10))


def test_tasks_of_several_threads_share_the_client(serve):
    server, client = serve(), FeedbackClient()
    senders = [threading.Thread(target=client.send, args=(runner_of(server), body(rows=n), LONG)) for n in range(10)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert sorted(taken(server, 10)) == list(range(10))


def test_the_token_is_in_no_log(deaf, caplog):
    caplog.set_level("DEBUG")
    client = FeedbackClient()
    refused = Runner("127.0.0.1", free_port(), TOKEN)
    assert not client.send(refused, body(), LONG)
    assert "a report did not leave for Runner(host='127.0.0.1'" in caplog.text
    gc.collect()
    assert TOKEN.decode() not in caplog.text + repr(client) + repr(client._slow)
