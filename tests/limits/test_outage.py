"""A service that is down for a while, behind a limit with a circuit breaker: afterwards it is called as before.

A few rounds; ``python -m tests.limits.campaign`` makes many."""

import pytest

from tests.limits.campaign import wrong
from tests.limits.outage import PLACES

SEEDS = 9


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(SEEDS))
def test_after_outages_calls_go_on_at_the_limit(place, seed):
    assert wrong(place, seed) == []
