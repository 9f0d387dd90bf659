"""A worker that a test has left warm would keep its timer in the tests that come after."""

import pytest

from pystorm_source.worker import warm


@pytest.fixture(autouse=True)
def _cold():
    yield
    while warm._idle:
        warm._idle.popitem()[1].stop()
