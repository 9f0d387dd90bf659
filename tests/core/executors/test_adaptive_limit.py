"""The limit of requests against simulated services: what they answer by it, and how soon it follows them."""

import heapq
import math
import random
from collections import deque

import pytest

from cython_core.executors.async_executor import AdaptiveLimit


class Fixed:
    """A limit that somebody has set."""

    def __init__(self, limit):
        self.limit = limit

    def began(self, in_flight):
        pass

    def ended(self, begun, now, refused):
        pass


def even(rnd):
    return 0.02 * math.exp(rnd.gauss(0, 0.2))


def memoryless(rnd):
    return rnd.expovariate(50)


def long_tailed(rnd):
    """p50 20 ms, p99 2 s."""
    return 0.02 * math.exp(rnd.gauss(0, math.log(100) / 2.326))


class Service:
    """Serves ``places`` requests at a time, others wait in line; with ``line=False`` it refuses them, after 1 ms."""

    def __init__(self, seconds_of, places, line=True, seed=1):
        self.seconds_of, self.places, self.line = seconds_of, places, line
        self.random = random.Random(seed)
        self.now, self.serving, self.under_way, self.number, self.worked = 0.0, 0, 0, 0, 0.0
        self.waiting, self.events = deque(), []

    def asked(self, limit, seconds):
        """(When it ended, how long it took, whether it was refused) of all requests of a client that always has one
        more, for so many seconds."""
        until, found = self.now + seconds, []
        while self.now < until:
            while self.under_way < limit.limit:
                self.under_way += 1
                limit.began(self.under_way)
                if self.serving < self.places or self.line:
                    self.waiting.append(self.now)
                else:
                    self._later(0.001, self.now, True)
                self._serve()
            self.now, _, begun, refused = heapq.heappop(self.events)
            self.under_way -= 1
            self.serving -= not refused
            self._serve()
            limit.ended(begun, self.now, refused)
            found.append((self.now, self.now - begun, refused))
        return found

    def _serve(self):
        while self.waiting and self.serving < self.places:
            self.serving += 1
            seconds = self.seconds_of(self.random)
            self.worked += seconds
            self._later(seconds, self.waiting.popleft(), False)

    def _later(self, seconds, begun, refused):
        self.number += 1
        heapq.heappush(self.events, (self.now + seconds, self.number, begun, refused))


def figures(found):
    """Answers, and the longest time of 99 % of them."""
    times = sorted(taken for _, taken, refused in found if not refused)
    return len(times), times[int(0.99 * len(times))]


def best_fixed(seconds_of, places, seconds, **how):
    """Of a sweep: the shortest p99 among those with 98 % of the most answers."""
    swept = []
    for factor in (0.8, 0.9, 1, 1.1, 1.2, 1.5):
        service, limit = Service(seconds_of, places, **how), Fixed(round(places * factor))
        service.asked(limit, 1.0)
        swept.append(figures(service.asked(limit, seconds)))
    most = max(answers for answers, _ in swept)
    return min((p99, answers) for answers, p99 in swept if answers >= 0.98 * most)


def holds(found, seconds_of, places, seconds, **how):
    p99, answers = best_fixed(seconds_of, places, seconds, **how)
    ours, our_p99 = figures(found)
    assert ours >= 0.9 * answers
    assert our_p99 <= 1.5 * p99


@pytest.mark.parametrize("places", [4, 20, 100])
def test_an_even_service_gives_nine_tenths_of_the_best_fixed_limit(places):
    service, limit = Service(even, places), AdaptiveLimit()
    service.asked(limit, 5.0)
    holds(service.asked(limit, 8.0), even, places, 8.0)


@pytest.mark.parametrize("places", [20, 100])
def test_so_does_one_whose_answers_vary(places):
    service, limit = Service(memoryless, places), AdaptiveLimit()
    service.asked(limit, 5.0)
    holds(service.asked(limit, 8.0), memoryless, places, 8.0)


@pytest.mark.parametrize("places", [5, 20, 100])
def test_a_service_that_refuses_is_not_pressed(places):
    service, limit = Service(even, places, line=False), AdaptiveLimit()
    service.asked(limit, 5.0)
    found = service.asked(limit, 8.0)
    holds(found, even, places, 8.0)
    assert sum(refused for *_, refused in found) < 0.05 * len(found)


@pytest.mark.parametrize("places", [10, 80])
def test_five_seconds_after_its_capacity_has_changed_the_figures_hold_again(places):
    service, limit = Service(even, 2 * places), AdaptiveLimit()
    service.asked(limit, 5.0)
    for now in (places, 2 * places):
        service.places = now
        service.asked(limit, 5.0)
        holds(service.asked(limit, 5.0), even, now, 5.0)


@pytest.mark.parametrize("places", [20, 50])
def test_a_long_tail_does_not_lower_it_for_good(places):
    service, limit = Service(long_tailed, places), AdaptiveLimit()
    service.asked(limit, 10.0)
    service.worked = 0.0
    found = service.asked(limit, 40.0)
    # By the work, not by the answers: a few long ones more or less make a tenth of their number.
    assert service.worked >= 0.85 * places * 40.0
    assert figures(found)[1] <= 1.5 * best_fixed(long_tailed, places, 40.0)[0]


def test_a_service_that_gets_slower_by_itself_keeps_its_requests():
    service, limit = Service(even, 50), AdaptiveLimit()
    service.asked(limit, 5.0)
    service.seconds_of = lambda rnd: 3 * even(rnd)
    service.asked(limit, 5.0)
    holds(service.asked(limit, 8.0), service.seconds_of, 50, 8.0)


def test_it_is_not_raised_while_places_are_free():
    limit = AdaptiveLimit()
    for n in range(1000):
        limit.began(1)
        limit.ended(n, n + 0.02, False)
    assert limit.limit == 4


def test_refusals_of_one_round_lower_it_once():
    service, limit = Service(even, 50), AdaptiveLimit()
    service.asked(limit, 5.0)
    before = limit.limit
    for _ in range(10):
        limit.ended(service.now - 0.01, service.now, True)
    assert limit.limit == int(before * 0.9)


def test_it_stays_between_one_and_the_most():
    limit = AdaptiveLimit(most=10)
    for n in range(1000):
        limit.began(10)
        limit.ended(n, n + 0.02, False)
    assert limit.limit == limit.most == 10
    for n in range(2000, 2100):
        limit.ended(n, n + 0.02, True)
    assert limit.limit == 1
    with pytest.raises(ValueError, match="at least one request must be allowed"):
        AdaptiveLimit(most=0)


def test_a_clock_that_stands_still_is_no_error():
    limit = AdaptiveLimit(most=100)
    for _ in range(3000):
        limit.began(limit.limit)
        limit.ended(1.0, 1.0, False)
    assert limit.limit == 100
