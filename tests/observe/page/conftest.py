"""The browser that the tests of a file share."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.observe.page.browser import chromium


# Playwright's event loop counts as the running one of this thread as long as the browser lives: no test of another
# file may find it.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser
