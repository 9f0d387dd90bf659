"""All that a task's process and its driver say to each other goes over one connection."""

import threading
import time
from functools import partial

import pytest

from pystorm_source.channel.client import RunnerClient
from pystorm_source.channel.leases.lease_server import LeaseServer
from pystorm_source.channel.reports.connections import ServerLimits
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.questions import QuestionListener
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.clock import ManualClock, SystemClock
from pystorm_source.limits.permits import Permits
from pystorm_source.options import EngineOptions, parse
from pystorm_source.records.question import ask
from pystorm_source.records.standstill import RangeState, TaskState, encoded
from testbed.ports import free_port
from tests.channel.leases.caller import Caller
from tests.channel.reports.made_reports import TOKEN, body, wait_until

LONG = 20.0
OPTIONS = parse(EngineOptions, {"topology.rate.limit": {"api": "200/s"}})
RANGE = RangeState(place="p", tasks=(TaskState(component="calls", task=1, in_call=True),))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "private" / "0123456789ab.ask"


@pytest.fixture
def client(path):
    """Of a server that takes one connection."""
    clock = SystemClock()
    server = ReportServer(
        "127.0.0.1",
        0,
        TOKEN,
        ServerLimits(connections=1, unauthenticated=1),
        clock,
        ask_at=partial(QuestionListener.at, path, "Shop", "0123456789abcdef"),
        leases=LeaseServer(OPTIONS, clock).answer,
    )
    server.start()
    made = RunnerClient(Runner(*server.address, TOKEN), clock)
    made.server = server
    yield made
    made.close()
    server.close()


def calling(client):
    times = []
    return Caller(Permits(OPTIONS.limits["api"], SystemClock(), client.permits), times, time.monotonic() + 60), times


def test_reports_answers_and_permits_share_one_connection_and_one_thread(client, path):
    threads = threading.active_count()
    caller, times = calling(client)
    with client.reports.reading(lambda: encoded(RANGE)):
        wait_until(lambda: len(times) > 5, "permits")
        for n in range(20):
            assert client.reports.send(body(rows=n), LONG)
        assert [run.ranges for run in ask([path], LONG)] == [(RANGE,)]
        seen = len(times)
        wait_until(lambda: len(times) > seen + 20, "permits after a report and a question")
    assert threading.active_count() <= threads + 2, "the caller's and the client's"
    caller.until = 0.0
    caller.thread.join(LONG)
    assert caller.error is None
    assert [each.rows for each in client.server.take()] == list(range(20))
    assert client.server.dropped == {}


def test_an_answer_that_cannot_be_given_costs_no_call_a_permit(client, path):
    def breaks():
        raise RuntimeError("dictionary changed size during iteration")

    caller, times = calling(client)
    with client.reports.reading(breaks):
        wait_until(lambda: len(times) > 5, "permits")
        connection = client.reports._link._nonce
        (run,) = ask([path], LONG)
        assert (run.ranges, run.asked.asked) == ((), 1)
        seen = len(times)
        wait_until(lambda: len(times) > seen + 20, "permits")
        assert client.reports._link._nonce == connection, "it is still open"
    caller.until = 0.0
    caller.thread.join(LONG)
    assert client.server.dropped == {}


def test_a_runner_that_was_away_for_long_is_tried_every_second_once_calls_want_permits():
    clock = ManualClock(1000.0)
    link = (made := RunnerClient(Runner("127.0.0.1", free_port(), TOKEN), clock)).reports._link
    made.permits._thread.wake = lambda: None  # its turns are taken here
    for _ in range(10):
        clock.advance(100.0)
        assert not link.send(body())
    assert link._pause == 60.0
    failed = link._failed_at
    clock.advance(1.0)
    Permits(OPTIONS.limits["api"], clock, made.permits).take(lambda: None)
    made.permits.turn()
    assert link._failed_at == failed + 1.0, "it has tried again"
    made.abandon()
