"""A headless Chromium, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from tests.missing import missing

WINDOW = {"width": 1280, "height": 900}


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser. Without one the test fails where CI=true, else it is skipped."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is None:
        missing("chromium", "chromium")
    # Chromium refuses its sandbox to the superuser, which a container's tests are.
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=[*sandbox, "--disable-dev-shm-usage"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, address: str, scheme: str = "light", expects_drawn: bool = True) -> Iterator[Page]:
    """The page at that address, drawn; fails if it complains on its console, be it of its policy."""
    page = browser.new_page(viewport=WINDOW, color_scheme=scheme)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    try:
        page.goto(address)
        if expects_drawn:
            page.wait_for_selector("body[data-drawn=yes]")
        yield page
        assert complaints == []
    finally:
        page.close()
