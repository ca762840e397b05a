"""Runs Debian's Chromium in headless mode with Playwright."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from deploy.scripts.chromium import find_chromium

PATIENCE_MS: Final = 60_000
RUN_MS: Final = 240_000
"""The time-out in milliseconds for a whole scenario. A single step of it may wait for 90 s (`demo.scenarios.context`)."""
DESKTOP: Final = {"width": 1100, "height": 720}
PHONE: Final = {"width": 390, "height": 844}


@contextmanager
def chromium() -> Iterator[Browser]:
    """Yields the browser. Skips the test if the machine has no Chromium."""
    program = find_chromium()
    if program is None:
        pytest.skip("no chromium program: apt-get install chromium")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


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
