"""The browser that this folder's tests share."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.observe.page.browser import chromium


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser
