"""Permits from a real Redis: for threads, processes and forks, with a Redis that is killed or cannot be reached."""

import itertools
import json
import shutil
import subprocess
import sys
import time

import pytest

from pystorm_source.channel.leases import lessor as lessors
from pystorm_source.channel.leases.checks import check_limits
from pystorm_source.channel.leases.redis_lessor import RETRY_SECONDS, RedisLessor, RedisPlace
from pystorm_source.clock import ManualClock, SystemClock
from pystorm_source.errors import OptionError, WorldError
from pystorm_source.limits.permits import Permits
from pystorm_source.limits.worker_limits import WorkerLimits
from testbed.periods import most_in_a_period
from testbed.ports import free_port
from tests.channel.leases.caller import Caller
from tests.channel.leases.redis_job import calling, options_of

LIMIT = 100
RATE = f"{LIMIT}/s"


def place_of(options):
    return RedisPlace(
        options.rate_limit_redis,
        options.rate_limit_redis_prefix,
        options.breaker_percent,
        options.breaker_pause_secs,
    )


def permits_of(options, clock=None):
    lessor = RedisLessor(place_of(options), clock)
    limits = WorkerLimits(options, clock or SystemClock())
    limits.lease_from(lessor)
    return limits.permits("api"), lessor


def job(*arguments):
    command = [sys.executable, "-m", "tests.channel.leases.redis_job", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def lines_of(process):
    """What a job and its fork have printed."""
    out, _ = process.communicate(timeout=90)
    assert process.returncode == 0
    found = [json.loads(line) for line in out.splitlines()]
    assert [line["errors"] for line in found] == [[]] * len(found)
    return [line["times"] for line in found]


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_processes_share_a_limit(redis):
    jobs = [job(redis.url, RATE, 7) for _ in range(2)]
    found = [times for each in jobs for times in lines_of(each)]
    times = sorted(itertools.chain(*found))
    assert most_in_a_period(times) <= LIMIT
    together = [time for time in times if max(map(min, found)) < time < min(map(max, found))]
    assert len(together) > 0.7 * LIMIT * (together[-1] - together[0])
    counts = [sum(together[0] <= time <= together[-1] for time in each) for each in found]
    assert max(counts) < 3 * min(counts), "neither starves"


def test_a_fork_gets_permits_of_its_own_and_the_limit_holds(redis):
    parent, child = sorted(lines_of(job(redis.url, RATE, 6, "fork")), key=min)
    assert min(map(len, (parent, child))) > 20
    assert max(parent) > min(child), "the parent's connection is its own"
    assert most_in_a_period(sorted(parent + child)) <= LIMIT


@pytest.mark.parametrize("data", ["kept", "lost"])
def test_a_redis_that_is_killed_and_started_again_gives_none_too_many(own_redis, tmp_path, data):
    options = options_of(own_redis.url, RATE, topology__rate__limit__redis__prefix=data)
    ends = time.monotonic() + 60
    callers, times, lessor = calling(options, ends)
    until(lambda: len(times) >= 50)
    own_redis.kill()
    if data == "lost":
        shutil.rmtree(tmp_path / "appendonlydir")
    own_redis.start()
    restarted = time.monotonic()
    until(lambda: sum(at > restarted + 1.0 for at in times) >= 50)
    for caller in callers:
        caller.until = 0.0
    for caller in callers:
        caller.thread.join(30)
        assert caller.error is None
    lessor.close()
    assert most_in_a_period(sorted(times)) <= LIMIT
    assert not [at for at in times if restarted + 0.2 < at < restarted + 1.0], "a new start gives none for a second"


def test_a_breaker_opens_and_closes_by_one_call(redis):
    options = options_of(redis.url, RATE, topology__circuit__breaker__pause__secs=0.5)
    permits, lessor = permits_of(options)
    times = []
    ends = time.monotonic() + 60
    callers = [Caller(permits, times, ends, lambda: time.monotonic() > times[0] + 1.0) for _ in range(3)]
    until(lambda: times and sum(at > times[0] + 1.0 for at in times) > 60)
    for caller in callers:
        caller.until = 0.0
    for caller in callers:
        caller.thread.join(30)
        assert caller.error is None
    lessor.close()
    times.sort()
    failed = [at for at in times if at <= times[0] + 1.0]
    assert 10 <= len(failed) < 40
    assert failed[-1] > failed[-2] + 0.4, "one call tries whether the service works"


def test_a_redis_that_cannot_be_reached_is_an_error_that_names_the_ways_out(monkeypatch):
    monkeypatch.setattr(lessors, "UNREACHABLE_SECONDS", 0.5)
    port = free_port()
    permits, lessor = permits_of(options_of(f"redis://u:pa%2Fss@127.0.0.1:{port}/0", RATE))
    caller = Caller(permits, [], time.monotonic() + 30)
    caller.thread.join(20)
    lessor.close()
    assert isinstance(caller.error, WorldError)
    assert caller.error.code == "PYSTORM_PERMITS_UNREACHABLE"
    message = str(caller.error)
    assert "topology.rate.limit.tasks" in message
    assert f"Given: 'redis://127.0.0.1:{port}/0'" in message
    assert "pa" + "/ss" not in message and "pa%2Fss" not in message
    assert "pa%2Fss" not in repr(place_of(options_of(f"redis://u:pa%2Fss@127.0.0.1:{port}/0", RATE)))


def test_a_short_outage_is_waited_out():
    clock = ManualClock(50.0)
    options = options_of("redis://127.0.0.1:1/0", RATE)
    lessor = RedisLessor(place_of(options), clock)
    permits = Permits(options.limits["api"], clock, lessor)
    lessor._thread.wake = lambda: None  # no thread that asks by itself
    waiter = permits.take(lambda: None)
    one = lessor._of(permits)
    for _ in range(3):
        lessor.turn()
        assert one.due() == clock.now + RETRY_SECONDS
        clock.advance(6.0)
    assert waiter.error is None
    clock.advance(3.0)
    lessor.turn()
    assert isinstance(waiter.error, WorldError)


def test_a_redis_that_refuses_is_an_error_at_once(redis):
    permits, lessor = permits_of(options_of(f"redis://u:pass-word@127.0.0.1:{redis.port}/0", RATE))
    caller = Caller(permits, [], time.monotonic() + 30)
    caller.thread.join(10)
    lessor.close()
    assert "Redis refuses that gives them" in str(caller.error)
    assert "pass-word" not in str(caller.error)


def test_what_a_url_says_wrong_is_refused_before_any_task_runs():
    options = options_of("redis://:pa%2Fss@127.0.0.1:6379/0?no_such_thing=1", RATE)
    with pytest.raises(OptionError, match="'topology.rate.limit.redis' has a part .*Given: 'redis://127.0.0.1:6379/0'"):
        check_limits(options, "a sink")


def test_without_the_package_redis_it_is_refused_before_any_task_runs(monkeypatch):
    monkeypatch.setitem(sys.modules, "redis", None)
    with pytest.raises(OptionError, match=r"topology.rate.limit.redis needs the package redis: pip install"):
        check_limits(options_of("redis://127.0.0.1/0", RATE))
