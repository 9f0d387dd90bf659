"""Every test of this room runs under both schedulers."""

from tests.both_schedulers import pytest_generate_tests, scheduler  # noqa: F401  found here by pytest
