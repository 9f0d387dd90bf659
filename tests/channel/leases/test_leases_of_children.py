"""Permits for the child processes of a worker: each leases for itself, from a server, a Redis, or a part of a share."""

import os
import signal
import time
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa
import pytest

from pystorm_source import Bolt
from pystorm_source.channel.leases import lessor as lessors
from pystorm_source.channel.leases.lease_server import LeaseServer
from pystorm_source.channel.leases.task_lessor import LeasePlace, lease
from pystorm_source.channel.reports.endpoint import Runner
from pystorm_source.channel.reports.server import ReportServer
from pystorm_source.clock import SystemClock
from pystorm_source.errors import TupleFailed, WorldError
from pystorm_source.limits.local_lessor import LocalLessor
from pystorm_source.limits.worker_limits import WorkerLimits, breaker_of
from testbed.periods import most_in_a_period
from testbed.ports import free_port
from tests.both_schedulers import SCHEDULERS
from tests.channel.leases.caller import Caller
from tests.channel.reports.made_reports import wait_until
from tests.worker.running import Numbers, rows, topology, worker_of

pytestmark = pytest.mark.timeout(60)
TOKEN = b"t" * 32
LIMIT = 200
BUSY = 1.3
"""Beside other tests a process may be stopped behind its permit. A whole limit for each would be twice as much."""
MOST = BUSY * LIMIT
OUT = pa.schema([("n", pa.int64()), ("at", pa.float64()), ("pid", pa.int64())])


class Ask(Bolt):
    outputs = ["n long", "at double", "pid long"]

    def process(self, tup):
        with self.limit("api"):
            self.emit([tup.values[0], time.monotonic(), os.getpid()])


class AskAgain(Ask):
    """In the worker's own process, for what comes of the others."""

    def process(self, tup):
        with self.limit("api"):
            self.emit(tup.values)
            calls.append(time.monotonic())


calls = []


def asking(cls=Ask, behind=None, scheduler="inline", limit=LIMIT, processes=2, **options):
    """A worker whose bolt has two processes. ``behind``: a bolt of its own process that reads that one."""
    s = Numbers.spec()
    ask = cls.spec(inputs=[s], processes=processes)
    more = {} if behind is None else {"again": behind.spec(inputs=[ask])}
    config = {key.replace("__", "."): value for key, value in options.items()}
    config = {"topology.rate.limit": {"api": f"{limit}/s"}, "topology.scheduler": scheduler, **config}
    last = "ask" if behind is None else "again"
    return worker_of(topology(s=s, ask=ask, **more), last, columns=(0, 1, 2), schema=OUT, overrides=config)


@contextmanager
def stopping(worker):
    try:
        yield worker
    finally:
        worker.stop()


@pytest.fixture
def serve():
    """Starts a server of permits; stops it at the end. Its lessor, and the place of it."""
    servers = []

    def start(worker):
        clock = SystemClock()
        leases = LeaseServer(worker.plan.options, clock)
        leases.askers = set()

        def answer(asker, body):
            leases.askers.add(asker)
            return leases.answer(asker, body)

        server = ReportServer("127.0.0.1", 0, TOKEN, clock=clock, leases=answer)
        server.start()
        servers.append(server)
        return leases, LeasePlace("run", Runner(*server.address, TOKEN))

    yield start
    for server in servers:
        server.close()


def check(times, least=0.4, limit=LIMIT):
    """The limit holds, and is used from the second second on: the first permits are further apart."""
    times = sorted(times)
    assert most_in_a_period(times) <= BUSY * limit
    late = [at for at in times if at >= times[0] + 1]
    assert (len(late) - 1) / (late[-1] - late[0]) >= least * limit


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_all_processes_of_a_worker_share_the_limit_of_a_server(serve, scheduler):
    with stopping(asking(behind=AskAgain, scheduler=scheduler)) as worker:
        leases, place = serve(worker)
        calls.clear()
        worker.lease_from(place)
        found = rows(worker.run("s", "p", 0, 300))
        assert sorted(n for n, _, _ in found) == list(range(300))
        check([*(at for _, at, _ in found), *calls])
        assert len(calls) == 300
        assert len(leases.askers) == 3, "two children and their parent, each over a connection of its own"
        first = {pid for _, _, pid in found}

        worker.lease_from(place)
        found = rows(worker.run("s", "p", 300, 320))
        assert {pid for _, _, pid in found} == first and os.getpid() not in first
        assert len(leases.askers) == 3


def test_children_follow_to_another_place(serve):
    with stopping(asking(limit=1000)) as worker:
        for low in (0, 20, 40):
            leases, place = serve(worker)
            worker.lease_from(place)
            assert len(rows(worker.run("s", "p", low, low + 20))) == 20
            assert len(leases.askers) == 2, "the parent has no bolt that calls"


def test_children_are_forked_while_the_parents_client_is_at_work(serve):
    with stopping(asking()) as worker:
        leases, place = serve(worker)
        limits = WorkerLimits(worker.plan.options, SystemClock())
    limits.lease_at(place)
    times, found = [], []
    caller = Caller(limits.permits("api"), times, time.monotonic() + 4)
    while not times:
        time.sleep(0.01)
    for _ in range(3):
        with stopping(asking()) as worker:
            worker.lease_from(place)
            found += rows(worker.run("s", "p", 0, 60))
    caller.thread.join()
    assert caller.error is None
    assert len(found) == 180
    assert most_in_a_period(sorted([*times, *(at for _, at, _ in found)])) <= MOST
    assert len(leases.askers) == 7, "two children of each worker, and the parent, whose connection stays its own"


class Down(Ask):
    def process(self, tup):
        with self.limit("api"):
            raise ConnectionError("down")


def test_how_the_last_calls_have_ended_is_told_before_a_child_ends(serve):
    for _ in range(3):
        worker = asking(Down)
        with stopping(worker):
            leases, place = serve(worker)
            worker.lease_from(place)
            with pytest.raises(TupleFailed, match="down"):
                rows(worker.run("s", "p", 0, 100))
        breaker = leases._states["api"].breaker
        assert breaker._last_calls(time.monotonic())[0] >= 1
        assert breaker.last_error == "ConnectionError: 'down'"


class DownForAWhile(Ask):
    exit_on_exception = False

    def initialize(self, conf, context):
        self.folder = conf["test.folder"]

    def process(self, tup):
        with self.limit("api"):
            if os.path.exists(f"{self.folder}/down"):
                with open(f"{self.folder}/failed", "a") as file:
                    file.write(".")
                raise ConnectionError("down")
            self.emit([tup.values[0], time.monotonic(), os.getpid()])


def test_a_breaker_of_the_driver_is_that_of_all_children(serve, tmp_path):
    (down := tmp_path / "down").touch()
    retries = {"topology__max__spout__retries": 60, "topology__spout__retry__backoff__millis": 10}
    with stopping(asking(DownForAWhile, test__folder=str(tmp_path), **retries)) as worker:
        leases, place = serve(worker)
        leases._changed = lambda: leases.outages() and leases._states["api"].breaker.openings and down.unlink(True)
        worker.lease_from(place)
        found = rows(worker.run("s", "p", 0, 60))
        assert sorted(n for n, _, _ in found) == list(range(60))
        assert leases.outages() == ()
        assert leases._states["api"].breaker.openings == 1
        counted = worker.report()["components"]["ask"]["permits"]["api"]
        assert counted["pause_seconds"] > 0.3
        # Outcomes are told together, after up to 0.2 s, in which others call on.
        assert (tmp_path / "failed").stat().st_size <= 0.4 * LIMIT


def test_a_child_that_is_killed_takes_no_limit_along(serve):
    with stopping(asking()) as worker:
        _, place = serve(worker)
        worker.lease_from(place)
        first = rows(worker.run("s", "p", 0, 100))
        for process in worker._children._processes[:1]:
            os.kill(process.pid, signal.SIGKILL)
        with pytest.raises(TupleFailed, match="killed by SIGKILL"):
            rows(worker.run("s", "p", 100, 300))
    with stopping(asking()) as worker:
        worker.lease_from(place)
        found = first + rows(worker.run("s", "p", 100, 300))
        assert sorted(n for n, _, _ in found) == list(range(300))
        assert most_in_a_period(sorted(at for _, at, _ in found)) <= MOST


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_an_unreachable_driver_is_the_components_error(monkeypatch, scheduler):
    monkeypatch.setattr(lessors, "UNREACHABLE_SECONDS", 0.5)
    with stopping(asking(scheduler=scheduler)) as worker:
        worker.lease_from(LeasePlace("run", Runner("127.0.0.1", free_port(), TOKEN)))
        with pytest.raises(TupleFailed, match=r"'ask', task \d.*no permits of limit 'api'") as failed:
            rows(worker.run("s", "p", 0, 10))
    assert isinstance(failed.value.__cause__, WorldError)
    assert failed.value.__cause__.code == "PYSTORM_PERMITS_UNREACHABLE"


class Elsewhere(NamedTuple):
    """A place that leads nowhere from any other process than this one."""

    run: str
    own: int

    def lessor(self, options, parts):
        if os.getpid() != self.own:
            raise OSError(f"no way from here to {self.run}")
        return LocalLessor(options.limits.values(), breaker_of(options), SystemClock())


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_child_that_cannot_go_where_its_permits_come_from_says_so(serve, scheduler):
    with stopping(asking(scheduler=scheduler)) as worker:
        worker.lease_from(Elsewhere("one", os.getpid()))
        with pytest.raises(
            TupleFailed, match=r"'ask', task \d: initialize\(\) raised OSError: no way from here to one"
        ):
            worker.start()
    with stopping(asking(scheduler=scheduler)) as worker:
        _, place = serve(worker)
        worker.lease_from(place)
        assert len(rows(worker.run("s", "p", 0, 10))) == 10
        worker.lease_from(Elsewhere("two", os.getpid()))
        with pytest.raises(TupleFailed, match=r"'ask', task \d.*no way from here to two"):
            rows(worker.run("s", "p", 10, 20))


def test_children_and_parent_share_the_limit_of_a_redis(redis):
    options = {"topology__rate__limit__redis": redis.url, "topology__rate__limit__redis__prefix": "children"}
    with stopping(asking(behind=AskAgain, **options)) as worker:
        calls.clear()
        lease(worker, "run", None)
        found = rows(worker.run("s", "p", 0, 300))
        assert sorted(n for n, _, _ in found) == list(range(300))
        check([*(at for _, at, _ in found), *calls])


@pytest.mark.parametrize("scheduler", SCHEDULERS)
def test_a_fixed_share_is_divided_among_the_processes_that_call(scheduler):
    options = {"topology__rate__limit__tasks": 2, "limit": 240}
    with stopping(asking(behind=AskAgain, scheduler=scheduler, **options)) as worker:
        calls.clear()
        lease(worker, "run", None)
        found = rows(worker.run("s", "p", 0, 200))
        assert len(found) == len(calls) == 200
        by_process = {}
        for _, at, pid in found:
            by_process.setdefault(pid, []).append(at)
        for times in (*by_process.values(), calls):
            assert most_in_a_period(sorted(times)) <= BUSY * 40
    with stopping(asking(scheduler=scheduler, **options)) as worker:
        lease(worker, "another run", None)
        check([at for _, at, _ in rows(worker.run("s", "p", 0, 300))], limit=120)


def test_nothing_of_it_is_left(serve):
    """The first worker begins what this process keeps: a client, and its thread."""
    left = []
    for i in range(3):
        with stopping(asking(limit=1000)) as worker:
            if i == 0:
                _, place = serve(worker)
            worker.lease_from(place)
            assert len(rows(worker.run("s", "p", 0, 20))) == 20
            pids = [process.pid for process in worker._children._processes]
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids)
        if i == 2:
            wait_until(lambda: len(os.listdir("/proc/self/fd")) <= left[1])
        left.append(len(os.listdir("/proc/self/fd")))
