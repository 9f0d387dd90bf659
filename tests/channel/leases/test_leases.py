"""Permits over a real connection: a server, and clients as tasks' processes have them."""

import time
from threading import Event, Thread

import pytest

from pystorm_source.channel.client import RunnerClient
from pystorm_source.channel.leases import lessor
from pystorm_source.channel.leases.lease_server import LeaseServer
from pystorm_source.channel.leases.messages import Granted, Wish, encode, granted_decoder
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.clock import ManualClock, SystemClock
from pystorm_source.errors import WorldError
from pystorm_source.limits.permits import Permits
from pystorm_source.limits.worker_limits import WorkerLimits
from pystorm_source.options import EngineOptions, parse
from testbed.periods import most_in_a_period
from tests.channel.leases.caller import Caller

TOKEN = b"t" * 32


def options(rate="100/s", **more):
    keys = {key.replace("__", "."): value for key, value in more.items()}
    return parse(EngineOptions, {"topology.rate.limit": {"api": rate}, **keys})


@pytest.fixture
def serve():
    """Starts a server for a rate; stops it at the end."""
    servers = []

    def start(given):
        clock = SystemClock()
        leases = LeaseServer(given, clock)
        leases.wishes = 0

        def answer(asker, body):
            leases.wishes += 1
            return leases.answer(asker, body)

        server = ReportServer("127.0.0.1", 0, TOKEN, clock=clock, leases=answer)
        server.start()
        servers.append(server)
        return leases, Runner(*server.address, TOKEN)

    yield start
    for server in servers:
        server.close()


def limits_of(given, runner):
    limits = WorkerLimits(given, SystemClock())
    client = RunnerClient(runner).permits
    limits.lease_from(client)
    return limits.permits("api"), client


def callers(given, runner, clients, each, seconds, outcome=lambda: True):
    """So many clients with so many calls at a time each; the times of all calls, and each client's number."""
    times, until = [], time.monotonic() + seconds
    made = [limits_of(given, runner) for _ in range(clients)]
    calling = [[Caller(permits, times, until, outcome) for _ in range(each)] for permits, _ in made]
    for group in calling:
        for caller in group:
            caller.thread.join(seconds + 30)
            assert caller.error is None
    for _, client in made:
        client.close()
    return sorted(times), [sum(caller.count for caller in group) for group in calling]


@pytest.mark.parametrize("each", [1, 5])
def test_clients_share_a_limit(serve, each):
    given = options("200/s")
    leases, runner = serve(given)
    began = time.monotonic()
    times, counts = callers(given, runner, 3, each, 4.0)

    assert times[0] - began >= 1.1, "a server that starts anew grants nothing for a second"
    assert most_in_a_period(times, 1.0) <= 200
    assert len(times) > 0.75 * 200 * (times[-1] - times[0])
    assert max(counts) < 3 * min(counts), "none starves"
    assert leases.wishes < len(times) / 2, "a wish is for many calls"


def test_a_breaker_is_that_of_all_clients(serve):
    """Each client sees too few failures to open one by itself."""
    given = options("100/s", topology__circuit__breaker__pause__secs=60)
    leases, runner = serve(given)
    times, _ = callers(given, runner, 4, 1, 3.5, outcome=lambda: False)

    assert 10 <= len(times) <= 100
    assert times[-1] - times[0] < 1.0
    assert 50 < leases.paused()["api"] <= 60


def test_a_breaker_closes_by_one_call(serve):
    given = options("100/s", topology__circuit__breaker__pause__secs=0.5)
    leases, runner = serve(given)
    works_from = time.monotonic() + 2.5
    times, _ = callers(given, runner, 2, 3, 5.0, outcome=lambda: time.monotonic() > works_from)

    assert leases.paused() == {}
    failed = [at for at in times if at < works_from]
    worked = [at for at in times if at >= works_from]
    assert len(failed) < 50
    assert len(worked) > 60, "calls go on"


def test_the_probe_of_a_process_that_is_killed_is_given_to_another_at_once(serve):
    given = options("100/s", topology__circuit__breaker__pause__secs=0.5)
    leases, runner = serve(given)
    callers(given, runner, 1, 3, 1.8, outcome=lambda: False)
    assert leases._states["api"].breaker.openings == 1
    # Two processes that wait; one gets the probe, and its connection is closed with its call under way.
    made = [limits_of(given, runner) for _ in range(2)]
    woken = Event()
    waiters = [permits.take(woken.set) for permits, _ in made]
    assert woken.wait(5)
    (holder,) = [place for place, waiter in enumerate(waiters) if waiter.probe]
    time.sleep(max(0.0, waiters[holder].time - time.monotonic()))
    assert made[holder][0].starts(waiters[holder])
    made[holder][1].close()
    end = time.monotonic() + 3
    while not waiters[1 - holder].probe:
        assert time.monotonic() < end
        time.sleep(0.01)
    made[1 - holder][1].close()


def test_a_server_that_cannot_be_reached_is_an_error_that_names_the_ways_out(monkeypatch):
    monkeypatch.setattr(lessor, "UNREACHABLE_SECONDS", 0.5)
    given = options()
    permits, client = limits_of(given, Runner("127.0.0.1", 1, TOKEN))
    caller = Caller(permits, [], time.monotonic() + 30)
    caller.thread.join(20)
    client.close()

    assert isinstance(caller.error, WorldError)
    assert "topology.rate.limit.tasks" in str(caller.error)
    assert "127.0.0.1:1" in str(caller.error)


def test_a_client_without_the_token_gets_nothing(serve):
    given = options()
    _, runner = serve(given)
    permits, client = limits_of(given, runner._replace(token=b"x" * 32))
    caller = Caller(permits, [], time.monotonic() + 2.5)
    caller.thread.join(20)
    client.close()

    assert caller.count == 0


def test_a_wish_that_is_none_is_dropped(serve):
    given = options()
    leases, _ = serve(given)
    for body in (b"{", b'{"limit": "other"}', b'{"wanted": 3}'):
        with pytest.raises((ValueError, KeyError)):
            leases.answer("someone", body)


def test_the_clocks_of_two_machines_may_differ():
    """The server's clock is 1000 s ahead: the times of permits are the client's."""
    clock = ManualClock(50.0)
    client = RunnerClient(Runner("127.0.0.1", 1, TOKEN), clock).permits
    permits = Permits(options().limits["api"], clock, client)
    one = client._of(permits)
    one.wants, one.sent, one.asked = True, 50.0, 1
    clock.advance(0.2)
    waiter = permits.take(lambda: None)
    client.took(encode(Granted(limit="api", now=1050.1, first=1050.5, count=1, apart=0.01, again=1050.1)))
    client.close()

    assert waiter.time == pytest.approx(50.5)


def test_a_late_answer_is_not_taken_for_that_of_the_next_wish():
    """Its permits would be used at a wrong time, and those of the right answer would be lost."""
    clock = ManualClock(50.0)
    client = RunnerClient(Runner("127.0.0.1", 1, TOKEN), clock).permits
    permits = Permits(options().limits["api"], clock, client)
    one = client._of(permits)
    one.wants, one.sent, one.asked, one.question = True, 52.0, 1, 2
    clock.advance(2.1)
    waiter = permits.take(lambda: None)
    late = Granted(limit="api", now=1050.1, first=1052.9, count=1, apart=0.01, again=1050.1, probe=7, question=1)
    client.took(encode(late))
    assert (waiter.time, one.sent, one.wish.probe, one.wish.works) == (None, 52.0, 7, None)
    client.took(encode(Granted(limit="api", now=1052.1, first=1052.3, count=1, apart=0.01, again=1052.1, question=2)))
    client.close()

    assert waiter.time == pytest.approx(52.3, abs=0.1)


def test_what_a_wish_says_survives_a_connection_that_breaks():
    clock = ManualClock(50.0)
    client = RunnerClient(Runner("127.0.0.1", 1, TOKEN), clock).permits
    permits = Permits(options().limits["api"], clock, client)
    one = client._of(permits)
    client._failed(one, Wish("api", good=3, bad=2, error="late", probe=7, works=False))
    client.close()

    assert one.wish == Wish("api", good=3, bad=2, error="late", probe=7, works=False)


def test_a_wish_for_nothing_takes_no_share_and_no_probe():
    given = options()
    clock = ManualClock()
    server = LeaseServer(given, clock)
    clock.advance(10)
    server.answer("one", encode(Wish("api", bad=10)))
    clock.advance(6)
    granted = granted_decoder.decode(server.answer("two", encode(Wish("api", good=1))))
    assert granted.count == 0
    assert granted_decoder.decode(server.answer("two", encode(Wish("api", wanted=5)))).probe


def test_calls_that_began_before_an_outage_do_not_open_the_breaker_behind_it():
    """A task that has asked for nothing meanwhile does not know of the outage when its calls end."""
    clock = ManualClock()
    server = LeaseServer(options(), clock)
    clock.advance(10)
    server.answer("one", encode(Wish("api", bad=10)))
    clock.advance(6)
    granted = granted_decoder.decode(server.answer("two", encode(Wish("api", wanted=1))))
    server.answer("two", encode(Wish("api", probe=granted.probe, works=True)))
    breaker = server._states["api"].breaker
    server.answer("one", encode(Wish("api", bad=100)))
    assert breaker.is_closed
    server.answer("two", encode(Wish("api", bad=100, openings=granted.openings)))
    assert not breaker.is_closed


def test_a_call_that_begins_to_wait_while_the_client_finds_that_none_does_is_asked_for(serve, monkeypatch):
    given = options()
    _, runner = serve(given)
    permits, client = limits_of(given, runner)
    monkeypatch.setattr(client._thread, "wake", lambda: None)  # its thread does not run: this one takes its turns
    one = client._of(permits)
    one.wants = True
    beside = []

    def wanted():
        """None; and before the client can do anything with it, a call begins to wait in another thread."""
        beside.append(Thread(target=client.want, args=(permits,)))
        beside[0].start()
        beside[0].join(0.2)  # it may be held up until the client is done
        return 0

    monkeypatch.setattr(permits, "wanted", wanted)
    client._ask_due()
    beside[0].join(10)
    assert one.wants
