"""The script that gives permits, in a real Redis. Where a state would have to be old, the test writes it."""

import itertools
import random
import re
from pathlib import Path

import pytest
from redis import Redis

from pystorm_source.channel.leases.redis_schedule import KEPT_SECONDS, RedisSchedule
from pystorm_source.clock import SystemClock
from pystorm_source.limits.schedule import HORIZON_SECONDS, PermitSchedule, begin_of
from pystorm_source.options.rate_limit import RateLimit
from testbed.periods import most_in_a_period

ROOT = Path(__file__).resolve().parents[3]
LIMIT = RateLimit("api", 100, 1.0)
APART = PermitSchedule(LIMIT, 0.0).apart
_numbers = itertools.count()


class Place:
    """A prefix that no other test has."""

    def __init__(self, server):
        self.server = server
        self.prefix = f"test{next(_numbers)}"
        self.client = Redis(port=server.port, decode_responses=True)

    def schedule(self, task="one"):
        return RedisSchedule(self.server.url, self.prefix, task, SystemClock())

    def key(self, name="api"):
        return f"{self.prefix}:{{{name}}}"

    def is_old(self, name="api"):
        """Its limit has been in use for long."""
        self.client.hset(self.key(name), "since", 0)

    def started(self, limit=LIMIT):
        """A schedule that gives permits."""
        schedule = self.schedule()
        assert schedule.lease(limit, 1, 0).number == 0
        self.is_old(limit.name)
        return schedule


@pytest.fixture
def place(redis):
    return Place(redis)


def times_of(answer, apart=APART):
    return [answer.first + n * apart for n in range(answer.number)]


def test_a_new_state_gives_none_for_a_second(place):
    answer = place.schedule().lease(LIMIT, 10, 0)
    assert answer.number == 0
    assert answer.again == pytest.approx(answer.now + begin_of(LIMIT, 0.0) - HORIZON_SECONDS, abs=1e-5)


def test_permits_of_several_tasks_are_evenly_apart_and_none_is_for_later_than_the_horizon(place):
    place.started()
    schedules = [place.schedule(task) for task in ("one", "two", "three")]
    chance = random.Random(7)
    given = []
    for _ in range(300):
        answer = chance.choice(schedules).lease(LIMIT, chance.randint(1, 30), chance.randint(0, 10))
        times = times_of(answer)
        assert all(answer.now < time <= answer.now + HORIZON_SECONDS + 1e-5 for time in times)
        given += times
        if not times:
            SystemClock().sleep(max(0.0, answer.again - answer.now))
    assert len(given) > 20
    assert all(after - before >= APART - 1e-5 for before, after in itertools.pairwise(given))
    assert most_in_a_period(given) <= 100


def test_what_was_not_taken_is_not_carried_over(place):
    schedule = place.started()
    answer = schedule.lease(LIMIT, 1000, 0)
    assert 1 < answer.number <= 1 + HORIZON_SECONDS / APART


def test_one_that_has_its_share_leaves_the_rest_to_others(place):
    schedule = place.started()
    place.schedule("two").lease(LIMIT, 1, 0)
    share = int(HORIZON_SECONDS / APART / 2)
    first = schedule.lease(LIMIT, 1000, 0)
    assert first.number == share
    assert schedule.lease(LIMIT, 1000, first.number).number <= 1
    assert place.schedule("two").lease(LIMIT, 1000, 0).number > share / 2


@pytest.mark.parametrize("lost", ["the state", "the clock"])
def test_a_state_that_cannot_be_right_begins_anew(place, lost):
    schedule = place.started()
    now = schedule.lease(LIMIT, 1, 0).now
    if lost == "the state":
        place.client.delete(place.key())
    else:
        place.client.hset(place.key(), "next", int((now + 10) * 1e6))
    answer = schedule.lease(LIMIT, 1, 0)
    assert answer.number == 0
    assert answer.again == pytest.approx(answer.now + begin_of(LIMIT, 0.0) - HORIZON_SECONDS, abs=1e-5)


def test_a_redis_that_was_started_again_begins_anew_although_it_has_its_data(own_redis):
    place = Place(own_redis)
    schedule = place.started()
    assert schedule.lease(LIMIT, 1, 0).number == 1
    own_redis.kill()
    own_redis.start()
    answer = schedule.lease(LIMIT, 1, 0)
    assert place.client.exists(place.key())
    assert answer.number == 0
    assert answer.again > answer.now + 0.9


def test_two_rates_of_one_name_share_its_times(place):
    slow = RateLimit("api", 20, 1.0)
    place.started()
    given = []
    for limit in [LIMIT, slow] * 3:
        answer = place.schedule(limit.text).lease(limit, 2, 0)
        given += times_of(answer, PermitSchedule(limit, 0.0).apart)
    assert len(given) >= 6
    assert all(after - before >= APART - 1e-5 for before, after in itertools.pairwise(given))


def test_a_limit_of_an_hour_waits_for_its_own_start_though_a_quicker_one_of_its_name_has_started(place):
    hour = RateLimit("api", 1, 3600.0)
    schedule = place.schedule()
    schedule.lease(LIMIT, 1, 0)
    place.client.hset(place.key(), "since", int((schedule.lease(LIMIT, 1, 0).now - 5) * 1e6))
    assert schedule.lease(LIMIT, 1, 0).number == 1
    answer = schedule.lease(hour, 1, 0)
    assert answer.number == 0
    assert answer.again - answer.now > 3600


def test_limits_and_prefixes_are_apart(place, redis):
    place.started()
    assert place.schedule().lease(RateLimit("mail", 1, 1.0), 1, 0).number == 0
    assert Place(redis).schedule().lease(LIMIT, 1, 0).number == 0
    assert place.schedule().lease(LIMIT, 1, 0).number == 1


def test_the_state_of_a_limit_that_no_task_uses_expires(place):
    schedule = place.started()
    schedule.lease(LIMIT, 1, 0)
    assert KEPT_SECONDS - 60 < place.client.ttl(place.key()) <= KEPT_SECONDS
    assert 0 < place.client.pttl(f"{place.key()}:tasks") <= 1000


def test_a_connection_that_was_closed_while_idle_is_opened_again_at_once(place):
    schedule = place.started()
    place.client.client_kill_filter(_type="normal", skipme=True)
    assert schedule.lease(LIMIT, 1, 0).number == 1


def test_a_script_that_redis_has_forgotten_is_sent_again(place):
    schedule = place.started()
    place.client.script_flush()
    assert schedule.lease(LIMIT, 1, 0).number == 1


def test_a_user_needs_no_more_than_the_documents_say(place):
    page = (ROOT / "docs" / "EFFECTS.md").read_text()
    commands = re.search(r"`(\+@connection [^`]*)`", page)[1].split()
    place.client.execute_command("ACL", "SETUSER", "few", "on", ">pw", f"~{place.prefix}:*", *commands)
    place.client.script_flush()
    url = f"redis://few:pw@127.0.0.1:{place.server.port}/0"
    schedule = RedisSchedule(url, place.prefix, "one", SystemClock())
    assert schedule.lease(LIMIT, 1, 0).number == 0
    place.is_old()
    assert schedule.lease(LIMIT, 1, 0).number == 1
