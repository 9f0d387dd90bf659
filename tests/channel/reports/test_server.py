"""The server for reports and its callers: none stops it, none fills the memory, none gets a false report in."""

import contextlib
import itertools
import random
import socket
import struct
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystorm_source.channel.reports.connections import ServerLimits
from pystorm_source.channel.reports.protocol import MOST_BODY, FrameRefused, frame
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.channel.reports.task_report import RangeReport
from tests.channel.reports.made_reports import TOKEN, Caller, body, report, wait_until

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def serve():
    """Starts servers with limits; closes them, and their thread must end."""
    servers = []

    def start(host="127.0.0.1", port=0, **limits):
        servers.append(ReportServer(host, port, TOKEN, ServerLimits(**limits)))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.close()
        assert not server._thread.is_alive()


@pytest.fixture
def call():
    callers = []

    def connect(server, **arguments):
        callers.append(Caller(server.address, **arguments))
        return callers[-1]

    yield connect
    for caller in callers:
        caller.close()


def taken(server, count):
    """Waits for that many reports."""
    found = []
    wait_until(lambda: found.extend(server.take()) or len(found) >= count, f"report {count}")
    return found


def as_sent(found):
    return RangeReport(**{name: getattr(found, name) for name in RangeReport.__struct_fields__})


def test_reports_arrive_in_order_with_the_time(serve, call):
    server = serve()
    caller = call(server)
    before = time.monotonic()
    for n in range(5):
        caller.send(body(rows=n))
    found = taken(server, 5)
    assert [as_sent(each) for each in found] == [report(rows=n) for n in range(5)]
    assert before <= found[0].arrived <= found[4].arrived <= time.monotonic()
    assert server.take() == []
    assert server.dropped == {}


@pytest.mark.parametrize("token", [b"", b"x" * 32, TOKEN[:-1], TOKEN + b"\0x"])
def test_a_wrong_token_is_no_way_in(serve, call, token):
    server = serve()
    caller = call(server, token=token)
    caller.send(body())
    assert caller.is_closed()
    assert server.dropped == {"wrong mac": 1}
    assert server.take() == []


def test_a_recorded_session_cannot_be_played_again(serve, call):
    server = serve()
    caller = call(server)
    recorded = [frame(TOKEN, caller.nonce, n, body(rows=n)) for n in range(3)]
    caller.write(b"".join(recorded))
    assert len(taken(server, 3)) == 3
    caller.write(recorded[0])  # in the same connection
    assert caller.is_closed()
    again = call(server)
    again.write(b"".join(recorded))
    assert again.is_closed()
    assert server.take() == []
    assert server.dropped == {"wrong mac": 2}


def test_garbage_closes_the_connection_that_sent_it(serve, call):
    server = serve()
    good = call(server)
    good.send(body())
    rng = random.Random(7)
    for data in (b"GET / HTTP/1.1\r\nHost: driver\r\n\r\n" * 2, b"\0" * 100, rng.randbytes(70_000)):
        bad = call(server)
        with contextlib.suppress(ConnectionError):
            bad.write(data)
        assert bad.is_closed()
    good.send(body())
    assert len(taken(server, 2)) == 2
    assert sum(server.dropped.values()) == 3


def test_a_huge_frame_is_refused_by_its_length(serve, call):
    server = serve()
    for length in (MOST_BODY + 1, 2**32 - 1):
        caller = call(server)
        caller.write(length.to_bytes(4, "big") + b"m" * 32)
        assert caller.is_closed()
    assert server.dropped == {"too long": 2}


def test_a_frame_that_is_no_report_is_dropped_and_the_next_one_taken(serve, call):
    server = serve()
    caller = call(server)
    for data in (b"", b"{}", b"[" * 8000, b"\x80\x04K\x01.", body().replace(b"0.5", b"NaN"), body(seconds=3.0)):
        caller.send(data)
    assert taken(server, 1)[0].seconds == 3.0
    assert server.dropped == {"malformed": 5}


def test_who_drips_is_closed_at_the_deadline_and_holds_up_nobody(serve, call):
    server = serve(first_frame_seconds=1.0, frame_seconds=1.0)
    good, begun = call(server), call(server)
    for caller in (good, begun):
        caller.send(body())
    assert len(taken(server, 2)) == 2
    dripping, mute = call(server), call(server)
    begun.write(frame(TOKEN, begun.nonce, 1, body())[:20])

    def drips():
        with contextlib.suppress(ConnectionError):
            for byte in frame(TOKEN, dripping.nonce, 0, body()):
                dripping.write(bytes([byte]))
                time.sleep(0.02)

    dripper = threading.Thread(target=drips, daemon=True)
    dripper.start()
    for n in range(10):
        good.send(body(rows=n))
    assert len(taken(server, 10)) == 10
    for late in (mute, begun, dripping):
        assert late.is_closed()
    dripper.join(20)
    assert server.dropped == {"too late": 3}
    good.send(body())
    assert len(taken(server, 1)) == 1, "one that is quiet between two frames was closed"


def test_quiet_connections_are_closed_in_the_end_without_a_word(serve, call):
    server = serve(idle_seconds=0.2)
    caller = call(server)
    caller.send(body())
    assert caller.is_closed()
    assert server.dropped == {}
    assert len(server.take()) == 1


def test_half_open_connections_by_the_hundred_keep_nobody_out(serve, call):
    server = serve(unauthenticated=16)
    warm = call(server)
    warm.send(body())
    assert taken(server, 1)
    threads = threading.active_count()
    mute = [call(server) for _ in range(300)]
    assert threading.active_count() <= threads
    new = call(server)
    new.send(body(rows=1))
    warm.send(body(rows=2))
    assert {each.rows for each in taken(server, 2)} == {1, 2}
    assert server.dropped["too many unauthenticated"] >= len(mute) - 16
    assert mute[0].is_closed()


def test_a_herd_of_new_workers_gets_in(serve, call):
    server = serve(connections=512, unauthenticated=256)
    herd = [call(server) for _ in range(200)]
    for n, caller in enumerate(herd):
        caller.send(body(rows=n))
    assert {each.rows for each in taken(server, 200)} == set(range(200))
    assert server.dropped == {}


DEEDS = ["connect", "garbage", "frame", "half a frame", "no report", "shut", "reset", "close"]


@settings(max_examples=30)
@given(st.lists(st.tuples(st.sampled_from(DEEDS), st.integers(0, 3)), max_size=40), st.randoms(use_true_random=False))
def test_whatever_callers_do_an_honest_report_arrives(deeds, rng):
    server = ReportServer("127.0.0.1", 0, TOKEN, ServerLimits(connections=6, unauthenticated=3))
    server.start()
    callers = {}
    try:
        for deed, who in deeds:
            with contextlib.suppress(OSError, FrameRefused):
                misbehave(deed, callers.setdefault(who, None) or Caller(server.address), callers, who, rng)
        honest = Caller(server.address)
        honest.send(body(rows=77))
        wait_until(lambda: any(each.rows == 77 for each in server.take()))
        honest.close()
    finally:
        for caller in filter(None, callers.values()):
            caller.close()
        server.close()
    assert not server._thread.is_alive()


def misbehave(deed, caller, callers, who, rng):
    callers[who] = caller
    if deed == "garbage":
        caller.write(rng.randbytes(rng.randrange(100)))
    elif deed == "frame":
        caller.send(body())
    elif deed == "half a frame":
        caller.write(frame(TOKEN, caller.nonce, caller.sequence, body())[: rng.randrange(60)])
    elif deed == "no report":
        caller.send(rng.randbytes(rng.randrange(100)))
    elif deed == "shut":
        caller.socket.shutdown(socket.SHUT_WR)
    elif deed == "reset":
        caller.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        caller.close()
    elif deed == "close":
        caller.close()


def test_where_there_are_too_many_the_one_that_was_quiet_longest_goes(serve, call):
    server = serve(connections=4, unauthenticated=4)
    callers = [call(server) for _ in range(4)]
    for n in (0, 1, 2, 3, 0):
        callers[n].send(body(rows=n))
        assert taken(server, 1)[0].rows == n
    fifth = call(server)
    fifth.send(body(rows=5))
    assert taken(server, 1)[0].rows == 5
    assert callers[1].is_closed()
    for n in (0, 2, 3):
        callers[n].send(body(rows=n))
    assert len(taken(server, 3)) == 3
    assert server.dropped == {"too many connections": 1}


def test_silent_connections_give_way_before_those_of_tasks(serve, call):
    server = serve(connections=6, unauthenticated=6, hello_seconds=0.0)
    tasks = [call(server) for _ in range(3)]
    for caller in tasks:
        caller.send(body())
    assert len(taken(server, 3)) == 3
    mute = [call(server) for _ in range(9)]
    assert all(each.is_closed() for each in mute[:6])
    for caller in tasks:
        caller.send(body())
    assert len(taken(server, 3)) == 3
    assert server.dropped == {"too many connections": 6}


def test_one_connection_may_not_send_for_ever(serve, call):
    server = serve(connection_bytes=10_000)
    caller = call(server)
    with contextlib.suppress(ConnectionError):
        for _ in range(100):
            caller.send(body())
    assert caller.is_closed()
    assert server.dropped == {"too much": 1}
    assert len(server.take()) < 100


@pytest.mark.parametrize("limits", [{"reports": 50}, {"report_bytes": 50 * len(body(rows=10_000))}])
def test_of_a_flood_of_reports_the_newest_are_kept(serve, call, limits):
    server = serve(share=1.0, **limits)
    caller = call(server)
    for n in range(10_000, 12_000):
        caller.send(body(rows=n))
    wait_until(lambda: server.dropped.get("overflow") == 1950, "the end of the flood")
    assert [each.rows for each in server.take()] == list(range(11_950, 12_000))


def test_a_flood_costs_a_share_of_one_processor(serve, call):
    server = serve(share=0.1, burst=0.01)
    flooding = threading.Event()

    def flood():
        with contextlib.suppress(ConnectionError):
            caller = Caller(server.address)
            for sequence in itertools.count():
                if flooding.is_set():
                    return
                caller.write(frame(TOKEN, caller.nonce, sequence, b"not a report"))

    worked = []
    connections = server._connections
    rest = connections._rest

    def resting(seconds):
        worked.append(seconds)
        rest(seconds)

    connections._rest = resting
    started = time.monotonic()
    flooder = threading.Thread(target=flood, daemon=True)
    flooder.start()
    wait_until(lambda: time.monotonic() > started + 1.0)
    elapsed, spent = time.monotonic() - started, sum(worked)
    flooding.set()
    server.close()
    flooder.join(20)
    assert spent < 0.1 * elapsed + 0.01 + max(worked)


def test_a_server_that_ends_gives_its_port_back_and_reads_on_from_open_connections(serve, call):
    server = serve()
    caller = call(server)
    caller.send(body(rows=1))
    taken(server, 1)
    server.refuse()
    wait_until(lambda: server._connections._listener.fileno() < 0, "the port")
    again = serve(port=server.address[1])
    caller.send(body(rows=2))
    call(again).send(body(rows=3))
    assert [found.rows for found in taken(server, 1) + taken(again, 1)] == [2, 3]
    server.refuse()


def test_waiting_for_a_processor_is_not_work(serve, call):
    """A thread that rests for that, too, is late on a busy machine: the counts of a micro-batch would lack ranges."""
    server = serve()
    waited, worked = [], []
    connections = server._connections
    connections._arrived = lambda body: waited.append(time.sleep(0.05))
    connections._rest = worked.append
    caller = call(server)
    for n in range(4):
        caller.send(body(rows=n))
    wait_until(lambda: len(waited) == 4, "the reports")
    assert sum(worked) < 0.1


def test_idle_it_does_nothing(serve, call):
    server = serve()
    caller = call(server)
    caller.send(body())
    assert taken(server, 1)
    rounds = []
    seconds = server._connections._seconds_left
    server._connections._seconds_left = lambda: rounds.append(1) or seconds()
    caller.send(body())  # the round under way still waits by the old one
    assert taken(server, 1)
    wait_until(lambda: rounds)
    before, clock = len(rounds), time.pthread_getcpuclockid(server._thread.ident)
    used = time.clock_gettime(clock)
    threading.Event().wait(0.5)
    assert len(rounds) == before
    assert time.clock_gettime(clock) - used < 0.01


def test_hosts_and_ports(serve):
    everywhere = serve(host="")
    assert Caller(("127.0.0.1", everywhere.address[1])).nonce
    named = serve(host="localhost")
    assert Caller(("localhost", named.address[1])).nonce
    here = serve()
    for host, port in (here.address, ("no-such-host.invalid", 0), ("198.51.100.1", 0)):
        with pytest.raises(OSError):
            ReportServer(host, port, TOKEN).start()


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 in this Python")
def test_both_families_where_there_are_both(serve):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 on this machine")
    for host in ("", "::", "::1"):
        server = serve(host=host)
        assert Caller(("::1", server.address[1])).nonce
        if host != "::1":
            assert Caller(("127.0.0.1", server.address[1])).nonce


def test_closing_ends_connections_and_frees_the_port(serve, call):
    server = serve()
    caller = call(server)
    caller.send(body())
    assert taken(server, 1)
    server.close()
    server.close()
    assert caller.is_closed()
    assert serve(port=server.address[1]).address == server.address
    assert server.take() == []


def test_the_token_is_in_nothing_that_is_shown(serve, call, caplog):
    caplog.set_level("DEBUG")
    server = serve()
    caller = call(server, token=b"wrong")
    caller.send(body())
    assert caller.is_closed()
    shown = "".join([repr(server), str(server.dropped), str(server.address), repr(server._connections), caplog.text])
    for text in (TOKEN.decode(), TOKEN.hex(), repr(TOKEN)):
        assert text not in shown
