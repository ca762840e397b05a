"""Runs Debian's Chromium and Firefox in headless mode with Playwright."""

import base64
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, Playwright, expect, sync_playwright

from deploy.scripts.browsers import MissingBrowser, find_browser

PATIENCE_MS: Final = 60_000
RUN_MS: Final = 240_000
"""The time-out in milliseconds for a whole scenario. A single step of it may wait for 90 s (`demo.scenarios.context`)."""
DESKTOP: Final = {"width": 1100, "height": 720}
PHONE: Final = {"width": 390, "height": 844}


_RELAY: Final = Path(__file__).with_name("firefox.py")


def program_of(kind: str) -> str:
    """Returns the path of "chromium" or "firefox". Skips the test if the browser is not installed."""
    try:
        return find_browser(kind)
    except MissingBrowser as error:
        pytest.skip(str(error))


@contextmanager
def browsers() -> Iterator[Callable[[str], Browser]]:
    """Yields a function that returns "chromium" or "firefox", started once. It skips the test if the browser is not installed."""
    expect.set_options(timeout=PATIENCE_MS)
    started: dict[str, Browser] = {}

    with sync_playwright() as playwright, tempfile.TemporaryDirectory(prefix="browsers-") as folder:

        def browser(kind: str) -> Browser:
            if kind not in started:
                started[kind] = _launched(playwright, kind, program_of(kind), Path(folder))
            return started[kind]

        yield browser
        for running in started.values():
            running.close()


def _launched(playwright: Playwright, kind: str, program: str, folder: Path) -> Browser:
    if kind == "chromium":
        return playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
    relayed = folder / kind
    relayed.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(_RELAY), program])} "$@"\n')
    relayed.chmod(0o755)
    # Playwright drives an installed Firefox, and not a Firefox of its own, only with this channel.
    return playwright.firefox.launch(executable_path=relayed, channel="moz-firefox")


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yields the browser. Skips the test if the machine has no Chromium."""
    with browsers() as browser:
        yield browser("chromium")


class Window:
    """A page of the browser, and its errors."""

    def __init__(self, page: Page, address: str) -> None:
        self.page = page
        self.complaints: list[str] = []
        self._address = address
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: self.complaints.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    def goto(self, path: str) -> None:
        """Opens a page of the console. A live page has been rendered at least once when this method returns."""
        self.page.goto(self._address + path, wait_until="domcontentloaded")
        if self.page.locator("#live-state").count():
            expect(self.page.locator("#live-state")).to_have_text("live")

    def sees_end_of_run(self) -> None:
        """Waits until the run of a scenario has ended. If a step times out, the run ends with the step's name."""
        self.page.wait_for_url("**/scenarios/run*")
        state = self.page.locator("main .state").first
        expect(state).not_to_have_text("running", timeout=RUN_MS)

    def sees(self, text: str) -> None:
        """Waits until the page contains the text."""
        expect(self.page.locator("main")).to_contain_text(text)

    def is_as_wide_as_the_screen(self) -> bool:
        """Returns True if the page needs no horizontal scrolling."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))

    def keep_picture(self, file: Path, height: int) -> None:
        """Saves a screenshot as WebP."""
        self.page.set_viewport_size({**DESKTOP, "height": height})
        session = self.page.context.new_cdp_session(self.page)
        picture = session.send("Page.captureScreenshot", {"format": "webp", "quality": 70, "captureBeyondViewport": False})
        file.write_bytes(base64.b64decode(picture["data"]))
