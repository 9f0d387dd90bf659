"""What gives permits is stopped, drips bytes, or gives more than it was asked for: no call waits for ever."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from pystorm_source.channel.client import RunnerClient
from pystorm_source.channel.leases import lessor as lessors
from pystorm_source.channel.leases import redis_schedule
from pystorm_source.channel.leases.messages import Granted, encode
from pystorm_source.channel.leases.redis_lessor import RedisLessor, RedisPlace
from pystorm_source.channel.leases.redis_schedule import RedisSchedule
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.clock import SystemClock
from pystorm_source.errors import WorldError
from pystorm_source.limits.permits import Permits
from pystorm_source.limits.worker_limits import WorkerLimits
from pystorm_source.options import EngineOptions, parse
from tests.channel.leases.caller import Caller
from tests.states.redis_process import redis_process

TOKEN = "t" * 32
OPTIONS = parse(EngineOptions, {"topology.rate.limit": {"api": "100/s"}})


def called_from(lessor):
    """A thread that calls as fast as the lessor lets it, and the times of its calls."""
    limits, times = WorkerLimits(OPTIONS, SystemClock()), []
    limits.lease_from(lessor)
    return Caller(limits.permits("api"), times, time.monotonic() + 60), times


def until(condition):
    end = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def error_of(caller, within):
    began = time.monotonic()
    caller.thread.join(within)
    assert isinstance(caller.error, WorldError), f"nothing after {time.monotonic() - began:.1f} s"
    assert caller.error.code == "PYSTORM_PERMITS_UNREACHABLE"
    return str(caller.error)


@pytest.fixture
def permits_process():
    """Its handle and its port."""
    command = [sys.executable, "-m", "tests.channel.leases.permits_process", "100/s", TOKEN]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    yield process, int(process.stdout.readline())
    process.kill()
    process.wait()


def test_a_driver_that_is_stopped_is_an_error_and_gives_permits_again_when_it_goes_on(permits_process, monkeypatch):
    monkeypatch.setattr(lessors, "UNREACHABLE_SECONDS", 2.5)
    process, port = permits_process
    client = RunnerClient(Runner("127.0.0.1", port, TOKEN.encode())).permits
    caller, times = called_from(client)
    until(lambda: len(times) > 20)
    os.kill(process.pid, signal.SIGSTOP)
    assert "does not answer" in error_of(caller, 10)
    os.kill(process.pid, signal.SIGCONT)
    again, times = called_from(client)
    until(lambda: len(times) > 20)
    again.until = 0.0
    again.thread.join(10)
    client.close()


def test_a_redis_that_is_stopped_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(lessors, "UNREACHABLE_SECONDS", 1.0)
    with redis_process(tmp_path) as redis:
        lessor = RedisLessor(RedisPlace(f"{redis.url}?socket_timeout=0.5", "p", 50, 5.0))
        caller, times = called_from(lessor)
        until(lambda: len(times) > 20)
        os.kill(redis.process.pid, signal.SIGSTOP)
        try:
            assert "has not reached the Redis" in error_of(caller, 10)
        finally:
            os.kill(redis.process.pid, signal.SIGCONT)
            lessor.close()


@pytest.fixture
def answering():
    """Starts a server that gives each connection to a function; its URL as that of a Redis."""
    listeners = []

    def start(serve):
        listener = socket.create_server(("127.0.0.1", 0))
        listeners.append(listener)

        def accept():
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(connection,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        return f"redis://127.0.0.1:{listener.getsockname()[1]}/0?protocol=2"

    yield start
    for listener in listeners:
        listener.close()


def drips(connection):
    """A number without an end, a digit every 0.3 s."""
    try:
        connection.sendall(b":")
        while True:
            connection.sendall(b"1")
            time.sleep(0.3)
    except OSError:
        pass


def test_a_redis_that_drips_is_an_error(answering, monkeypatch):
    """Each byte comes within the time-out of the socket."""
    monkeypatch.setattr(redis_schedule, "DEADLINE_SECONDS", 0.6)
    monkeypatch.setattr(lessors, "UNREACHABLE_SECONDS", 2.0)
    lessor = RedisLessor(RedisPlace(answering(drips), "p", 50, 5.0))
    caller, _ = called_from(lessor)
    assert "has not reached the Redis" in error_of(caller, 15)
    lessor.close()


def gives_too_many(connection):
    """20,000,000 permits for any wish."""
    try:
        while data := connection.recv(65536):
            now = int(time.time() * 1_000_000)
            if b"EVALSHA" in data:
                connection.sendall(b"*4\r\n:%d\r\n:%d\r\n:20000000\r\n:%d\r\n" % (now, now + 1000, now))
            else:
                connection.sendall(b"+OK\r\n" * data.count(b"\r\n*", 0) + b"+OK\r\n")
    except OSError:
        pass


def test_a_redis_that_gives_more_than_was_asked_for_is_refused(answering):
    schedule = RedisSchedule(answering(gives_too_many), "p", "task", SystemClock())
    with pytest.raises(WorldError, match="does not answer what it was asked"):
        schedule.lease(OPTIONS.limits["api"], 3, 0)
    schedule.close()


def test_a_driver_that_gives_more_than_was_asked_for_gives_as_many_as_that():
    client = RunnerClient(Runner("127.0.0.1", 1, b"")).permits
    permits = Permits(OPTIONS.limits["api"], SystemClock(), client)
    one = client._of(permits)
    one.sent, one.asked = time.monotonic(), 3
    client.took(encode(Granted(limit="api", now=0.0, first=1e9, count=20_000_000, apart=1.0)))
    client.close()
    assert len(permits._in_hand) == 3
