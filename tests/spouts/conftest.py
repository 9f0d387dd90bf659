"""What the tests of files share."""

import pytest

from pystorm_source.clock import ManualClock, SystemClock


@pytest.fixture
def logs(tmp_path):
    """An empty folder."""
    folder = tmp_path / "logs"
    folder.mkdir()
    return folder


@pytest.fixture
def clock():
    """A little ahead of the files' own times, which no test can set."""
    return ManualClock(SystemClock().wall() + 1)
