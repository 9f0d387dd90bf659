"""Every test of this room runs under both schedulers."""

from tests.both_schedulers import pytest_generate_tests, scheduler  # noqa: F401  found here by pytest
from tests.worker.threads import no_thread_is_left  # noqa: F401  found here by pytest
