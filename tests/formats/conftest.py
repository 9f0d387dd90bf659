"""The registry that tests of formats with schemas share."""

import pytest


@pytest.fixture(scope="module")
def shared():
    from tests.formats.schema_registry import schema_registry  # order: the other formats need none of its packages

    with schema_registry() as found:
        yield found


@pytest.fixture
def registry(shared):
    """Which was not asked anything that counts; schemas under a new name are new to it."""
    shared.asked.clear()
    return shared
