"""The thread of a client: when none can be started, and when a part of the client always raises."""

import logging
import threading
from contextlib import contextmanager

import pytest

from pystorm_source.channel.client import RunnerClient
from pystorm_source.channel.leases.cut_off import CutOff
from pystorm_source.channel.leases.lease_server import LeaseServer
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.clock import SystemClock
from pystorm_source.errors import WorldError
from pystorm_source.limits.permits import Permits
from pystorm_source.options import EngineOptions, parse
from tests.channel.reports.made_reports import TOKEN, body, wait_until

LONG = 20.0
LIMIT = parse(EngineOptions, {"topology.rate.limit": {"api": "200/s"}})
TWO_LIMITS = parse(EngineOptions, {"topology.rate.limit": {"api": "200/s", "other": "200/s"}})


@contextmanager
def no_thread_starts():
    """As in a process that may have no more threads. Not by a stack that no address space holds: CPython 3.11 keeps a
    state of the thread that did not start, under the number of the one that started it, and what is to be raised in
    that one then goes astray."""

    def refuse(*_):
        raise RuntimeError("can't start new thread")

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_start_new_thread", "_start_joinable_thread"):  # before and from CPython 3.13
            patch.setattr(threading, name, refuse, raising=False)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            threading.Thread(target=print).start()
        yield


@pytest.fixture
def client():
    clock = SystemClock()
    server = ReportServer("127.0.0.1", 0, TOKEN, clock=clock, leases=LeaseServer(LIMIT, clock).answer)
    server.start()
    made = RunnerClient(Runner(*server.address, TOKEN), clock)
    made.server = server
    yield made
    made.close()
    server.close()


def rows_of(client, count):
    """Of so many reports, once they have arrived."""
    found = []
    wait_until(lambda: found.extend(client.server.take()) or len(found) >= count, f"report {count}")
    return [each.rows for each in found]


def permits_of(client, name="api"):
    return Permits(TWO_LIMITS.limits[name], SystemClock(), client.permits)


def test_calls_that_find_no_thread_raise_at_once_and_later_ones_get_permits(client):
    permits = permits_of(client)
    with no_thread_starts():
        for _ in range(2):
            waiter = permits.take(lambda: None)
            assert isinstance(waiter.error, WorldError)
            assert "start a thread" in str(waiter.error)
            assert waiter.error.code == "PYSTORM_PERMITS_UNREACHABLE"
        permits.ended(waiter, True)
    woken = threading.Event()
    waiter = permits.take(woken.set)
    assert woken.wait(LONG)
    assert (waiter.error, waiter.time is not None) == (None, True)


def test_a_report_that_finds_no_thread_costs_its_task_nothing_and_leaves_later(client):
    with no_thread_starts():
        assert not client.reports.send(body(rows=1), LONG)
        with client.reports.reading(lambda: b""):
            pass
    assert client.reports.send(body(rows=2), LONG)
    assert rows_of(client, 2) == [1, 2]


def test_a_client_that_had_no_thread_is_closed():
    client = RunnerClient(Runner("127.0.0.1", 1, TOKEN))
    with no_thread_starts():
        client.reports.send(body(), 0.0)
        client.close()
    assert client.reports._link._waker.fileno() == -1


def test_a_call_is_cut_off_although_no_thread_could_be_started_for_the_one_before():
    cut = threading.Event()
    cut_off = CutOff(cut.set)
    with no_thread_starts(), pytest.raises(RuntimeError), cut_off.within(0.01):
        pass
    with cut_off.within(0.01):
        assert cut.wait(LONG)


class Breaks:
    """A part that raises at each of its turns."""

    turns = 0

    def due(self):
        return 0.0

    def turn(self):
        self.turns += 1
        raise TypeError("a fault of the engine")


@pytest.mark.parametrize("place", [0, 2])
def test_a_part_that_always_raises_holds_up_no_other_and_is_in_the_log_once(client, caplog, place):
    thread, breaks = client.permits._thread, Breaks()
    parts = list(thread.parts)
    parts.insert(place, breaks)
    thread.parts = tuple(parts)
    caplog.set_level(logging.WARNING, "pystorm.source")
    for n in range(20):
        assert client.reports.send(body(rows=n), LONG)
    wait_until(lambda: breaks.turns >= 2, "its second turn")
    assert rows_of(client, 20) == list(range(20))
    assert client.server.dropped == {}
    (record,) = caplog.records
    assert "Breaks" in record.getMessage() and "a fault of the engine" in caplog.text
    thread.parts = tuple(part for part in parts if part is not breaks)


def test_calls_are_refused_although_every_question_raises(client, monkeypatch):
    monkeypatch.setattr("pystorm_source.channel.leases.lessor.UNREACHABLE_SECONDS", 0.2)
    monkeypatch.setattr(client.permits, "_ask", lambda one: 1 / 0)
    woken = threading.Event()
    waiter = permits_of(client).take(woken.set)
    assert woken.wait(LONG)
    assert isinstance(waiter.error, WorldError)


def test_a_limit_that_gets_no_answer_leaves_the_connection_of_the_others_open(client, monkeypatch):
    """The server knows no limit "other"; that of the other limit has a probe, which belongs to the connection."""
    monkeypatch.setattr("pystorm_source.channel.leases.lessor.UNREACHABLE_SECONDS", 0.5)
    woken, refused = threading.Event(), threading.Event()
    permits_of(client).take(woken.set)
    assert woken.wait(LONG)
    connection = client.reports._link._nonce
    waiter = permits_of(client, "other").take(refused.set)
    while not refused.is_set():
        answered = threading.Event()
        permits_of(client).take(answered.set)
        assert answered.wait(LONG)
    assert isinstance(waiter.error, WorldError)
    assert client.reports.send(body(rows=1), LONG)
    assert client.reports._link._nonce == connection


def test_a_connection_over_which_nothing_comes_is_opened_anew(client, monkeypatch):
    monkeypatch.setattr("pystorm_source.channel.leases.lessor.UNREACHABLE_SECONDS", 0.2)
    monkeypatch.setattr(client.server._connections, "_leases", lambda asker, wish: b"")
    assert client.reports.send(body(rows=1), LONG)
    connection, refused = client.reports._link._nonce, threading.Event()
    permits_of(client).take(refused.set)
    assert refused.wait(LONG)
    assert client.reports.send(body(rows=2), LONG)
    assert client.reports._link._nonce != connection
