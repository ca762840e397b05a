"""Tests of the page docs/play in two browsers: each button, two screens and two languages.

A round must write the same bytes in both, in Node.js and in CPython. With PLAY_PICTURES=FOLDER a picture of each
screen is saved there.
"""

import functools
import gzip
import hashlib
import http.server
import io
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from demo.play.buttons import BUTTONS
from deploy.scripts.pinned import CannotFetch
from deploy.scripts.site_play import CannotBuildPlay, build, pyodide_tarball, run_in_node, unpack_pyodide
from rocketmq_broker.admin.replay import HISTORIES
from tests.foreign.browser.browser import PHONE, browsers

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]  # the first one builds the page

ROOT = Path(__file__).resolve().parents[3]
PICTURES = os.environ.get("PLAY_PICTURES")
START_MS = 150_000
"""The time-out in milliseconds until the broker runs in the page, also on a busy machine."""
SCREENS = {"desktop": {"width": 1280, "height": 900}, "phone": dict(PHONE)}
LANGUAGES = {"en": "index.html", "zh": "zh.html"}
BROWSERS = ["chromium", "firefox"]
MAX_BYTES = 15_000_000
"""What the page loads at most."""
ORDER = [
    "place", "wait-6", "refuse-credit", "place", "deliver-twice", "lose-commit", "hold-checks", "place", "wait-60",
    "release-checks", "kill", "restart", "power", "restart", "cut", "fill-disk", "free-disk", "slow", "place", "wait-60",
    "die-before-commit", "place", "start-shop", "wait-3600", "mistake-rollback", "mistake-no-key", "mistake-send-inside", "place",
    "as-apache", "place",
]  # fmt: skip
"""Presses of every button, in an order in which each can be pressed."""
KEEP_WORKER = """() => {
  window.Worker = class extends Worker { constructor(...given) { super(...given); window.lastWorker = this; } };
}"""
"""Keeps the worker that the page starts, so that a test can send it messages. Playwright cannot evaluate in Firefox's workers."""
SHARED = """
import json
from demo.play import entry

def call(**arguments):
    answer = json.loads(entry.call(json.dumps(arguments)))
    if "error" in answer:
        raise AssertionError(answer["error"])
    return answer["result"]

hashes = {}
for one in call(do="rounds", language="en"):
    call(do="start", seed=one["seed"])
    call(do="play", words=[word for step in one["steps"] for word in step["words"]])
    hashes[one["name"]] = call(do="state", language="en")["sha256"]
print(json.dumps(hashes), flush=True)
"""
"""Plays each round and prints the hash of its commit log. It runs in CPython and in node."""


@dataclass(frozen=True)
class Site:
    folder: Path
    address: str

    @property
    def runtime(self) -> Path:
        return self.folder / "runtime"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None: ...


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site") / "play"
    shutil.copytree(ROOT / "docs" / "play", folder)
    try:
        build(folder)
    except (CannotFetch, CannotBuildPlay) as error:
        pytest.skip(str(error))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield Site(folder, f"http://127.0.0.1:{server.server_port}/")
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Callable[[str], Browser]]:
    with browsers() as running:
        yield running


@pytest.fixture(scope="module")
def in_cpython() -> dict[str, str]:
    """Returns the hash of the commit log that each round leaves in CPython."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, [ROOT, ROOT / "broker", ROOT / "packages" / "commitlog"]))}
    done = subprocess.run([sys.executable, "-c", SHARED], env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    hashes: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    assert len(set(hashes.values())) > 5
    assert hashlib.sha256(b"").hexdigest() not in hashes.values()
    return hashes


@dataclass
class Opened:
    page: Page
    asked: list[str]
    complaints: list[str]
    console_errors: list[str]

    def start(self) -> None:
        self.page.locator("#start").click()
        self.is_drawn()

    def is_drawn(self) -> None:
        """Waits until the page shows the broker's state. Fails if it shows an error, other than that Python takes long."""
        drawn = self.page.locator("#sha256:visible, #replayed svg.sequence:visible")
        wrong = self.page.locator("#trouble:visible", has_not_text=re.compile(" 30 (s|秒)"))
        expect(drawn.or_(wrong).first).to_be_visible(timeout=START_MS)
        expect(self.page.locator("#trouble")).to_be_hidden()

    def press(self, name: str) -> None:
        self.page.locator("#status").evaluate("status => { status.textContent = ''; }")
        self.page.locator(f'button[data-button="{name}"]').click()
        self.has_answered(name)

    def has_answered(self, name: str) -> None:
        expect(self.page.locator("#status")).not_to_be_empty()
        expect(self.page.locator("#play")).not_to_have_attribute("aria-busy", "true")
        expect(self.page.locator("#status")).to_contain_text(" ms" if self.page.url.find("zh.html") < 0 else "毫秒")

    def sha256(self) -> str:
        return self.page.locator("#sha256").inner_text()

    def is_as_wide_as_the_screen(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))

    def picture(self, name: str) -> None:
        if PICTURES:
            self.page.screenshot(path=Path(PICTURES) / f"{name}.png", full_page="full" in name)


@pytest.fixture
def opened(site: Site, browser: Callable[[str], Browser]) -> Iterator[Callable[..., Opened]]:
    pages: list[Opened] = []

    def open_page(language: str, screen: str, address: str = "", *, kind: str = "chromium") -> Opened:
        page = browser(kind).new_page(viewport=SCREENS[screen])
        found = Opened(page, [], [], [])
        pages.append(found)
        page.on("request", lambda request: found.asked.append(request.url))
        page.on("pageerror", lambda error: found.complaints.append(str(error)))
        page.on("console", lambda line: found.console_errors.append(line.text) if line.type == "error" else None)
        page.goto(f"{site.address}{LANGUAGES[language]}{address}")
        expect(page.locator("#start")).to_be_enabled()
        return found

    yield open_page
    for found in pages:
        found.page.close()
    assert [found.complaints for found in pages if found.complaints] == []


def test_the_presses_are_of_every_button() -> None:
    assert set(ORDER) == set(BUTTONS)


def test_the_page_loads_what_its_manifest_names_and_no_more_than_15_megabytes(site: Site) -> None:
    manifest = json.loads((site.runtime / "manifest.json").read_text())
    files = {file.name: file.stat().st_size for file in site.runtime.iterdir() if file.suffix not in (".css", ".json")}
    assert manifest == {"bytes": sum(files.values()), "files": files}
    assert manifest["bytes"] <= MAX_BYTES


@pytest.mark.parametrize(
    ("kind", "language", "screen"),
    [
        *(("chromium", language, screen) for language in LANGUAGES for screen in SCREENS),
        ("firefox", "en", "desktop"),
        ("firefox", "zh", "phone"),
    ],
)
def test_each_button_is_answered(kind: str, language: str, screen: str, opened: Callable[..., Opened], site: Site) -> None:
    window = opened(language, screen, kind=kind)
    assert not [url for url in window.asked if "modules.zip" in url], "nothing is loaded before the click"
    window.picture(f"start-{language}-{screen}-{kind}")
    window.start()
    for name in ORDER:
        window.press(name)
    window.picture(f"state-{language}-{screen}-{kind}")
    window.picture(f"state-{language}-{screen}-{kind}-full")
    assert window.is_as_wide_as_the_screen()
    assert window.page.url.endswith(f"#seed=7&do={','.join(ORDER)}")
    window.page.locator("#log button").first.click()
    expect(window.page.locator("#record")).to_contain_text("MAGICCODE")
    assert window.is_as_wide_as_the_screen()
    window.page.locator("#show-test").click()
    expect(window.page.locator("#test pre")).to_contain_text("def test_")
    assert window.is_as_wide_as_the_screen()
    assert [url for url in window.asked if not url.startswith((site.address, "data:", "blob:"))] == []
    assert window.console_errors == []


@pytest.mark.parametrize("kind", BROWSERS)
def test_the_page_is_used_by_keyboard_alone(kind: str, opened: Callable[..., Opened]) -> None:
    window = opened("en", "desktop", kind=kind)
    keyboard = window.page.keyboard

    def tab_to(selector: str) -> None:
        for _ in range(80):
            if window.page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
            keyboard.press("Tab")
        raise AssertionError(f"the tab key does not lead to {selector}")

    tab_to("#start")
    keyboard.press("Enter")
    window.is_drawn()
    tab_to('button[data-button="place"]')
    keyboard.press("Enter")
    window.has_answered("place")
    expect(window.page.locator('button[data-button="place"]')).to_be_focused()
    tab_to("#log button")
    keyboard.press("Enter")
    expect(window.page.locator("#record h3")).to_be_focused()


def test_a_round_leaves_the_same_bytes_in_node_and_in_cpython(in_cpython: dict[str, str], site: Site, tmp_path: Path) -> None:
    archive = io.BytesIO(gzip.decompress((site.runtime / "modules.zip.bin").read_bytes()))
    zipfile.ZipFile(archive).extractall(tmp_path / "modules")
    unpack_pyodide(pyodide_tarball(), tmp_path / "pyodide")
    in_node = json.loads(run_in_node(SHARED, tmp_path / "pyodide", [tmp_path / "modules"]).splitlines()[-1])
    assert in_node == in_cpython


@pytest.mark.parametrize("kind", BROWSERS)
def test_a_round_leaves_the_same_bytes_in_a_browser_and_in_cpython(
    kind: str, in_cpython: dict[str, str], opened: Callable[..., Opened]
) -> None:
    window, in_browser = opened("en", "desktop", kind=kind), {}
    window.start()
    for name in in_cpython:
        window.page.evaluate("name => { location.hash = `#seed=7&round=${name}`; }", name)
        expect(window.page.locator(f'#rounds a[aria-current][href$="round={name}"]')).to_be_attached()
        expect(window.page.locator("#address")).to_have_attribute("href", "#seed=7")
        for step in window.page.locator("#round button[data-step]").all():
            window.page.locator("#status").evaluate("status => { status.textContent = ''; }")
            step.click()
            window.has_answered(name)
        in_browser[name] = window.sha256()
    assert in_browser == in_cpython


def test_an_order_opens_its_diagram(opened: Callable[..., Opened]) -> None:
    window = opened("en", "desktop", "#seed=7&do=lose-commit,place,place:bob:900,wait-6")
    window.start()
    expect(window.page.locator("#diagram")).not_to_contain_text("check-back 1")
    first = window.page.locator("#orders button").first
    first.click()
    expect(window.page.locator("#diagram")).to_contain_text("check-back 1")
    expect(window.page.locator("#status")).to_have_text(f"Sent for order {first.inner_text()}")


@pytest.mark.parametrize("kind", BROWSERS)
def test_a_link_to_a_state_replays_it(kind: str, opened: Callable[..., Opened]) -> None:
    address = "#seed=8&do=lose-commit,place:bob:900,wait-6"
    first, second = opened("en", "desktop", address), opened("zh", "desktop", address, kind=kind)
    for window in (first, second):
        window.start()
        expect(window.page.locator("#orders")).to_contain_text("bob")
    assert first.sha256() == second.sha256()
    assert first.page.url.endswith(address)
    first.page.locator("a.language").click()
    assert first.page.url.endswith(f"zh.html{address}")


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_apaches_check_is_replayed_and_each_history_is_an_address(
    language: str, screen: str, opened: Callable[..., Opened]
) -> None:
    window = opened(language, screen, "#replay=two-offsets")
    window.start()
    expect(window.page.locator("#replayed svg.sequence")).to_be_visible()
    for name in HISTORIES:
        if not window.page.url.endswith(f"#replay={name}"):
            window.page.locator(f'#replayed a[href="#replay={name}"]').click()
        expect(window.page.locator(f'#replayed a[href="#replay={name}"]')).to_have_count(0)
        expect(window.page.locator("#replayed svg.sequence")).to_have_count(1)
        expect(window.page.locator("#verdict")).to_be_hidden()
        assert window.page.url.endswith(f"{LANGUAGES[language]}#replay={name}")
        assert window.is_as_wide_as_the_screen()
        window.picture(f"replay-{name}-{language}-{screen}-full")
    window.page.locator("#to-shop").click()
    expect(window.page.locator("#verdict")).to_be_visible()
    window.press("place")
    window.page.locator("#to-replayed").click()
    expect(window.page.locator("#replayed")).to_contain_text("removeMap")
    window.page.locator("#to-shop").click()
    expect(window.page.locator("#orders")).to_contain_text("alice")
    assert window.page.url.endswith("#seed=7&do=place")


def test_an_address_with_an_unknown_button_says_so(opened: Callable[..., Opened]) -> None:
    window = opened("en", "desktop", "#seed=7&do=place,explode")
    window.page.locator("#start").click()
    expect(window.page.locator("#trouble")).to_contain_text("explode: unknown button explode", timeout=START_MS)


@pytest.mark.parametrize("kind", BROWSERS)
def test_a_worker_that_dies_says_so_and_starts_again_with_the_same_buttons(kind: str, opened: Callable[..., Opened]) -> None:
    window = opened("en", "desktop", "#seed=7&do=place", kind=kind)
    window.page.evaluate(KEEP_WORKER)
    window.start()
    before = window.sha256()
    window.page.evaluate("() => { window.lastWorker.postMessage({id: 0, call: 1n}); }")
    expect(window.page.locator("#trouble")).to_contain_text("Python has stopped: ")
    window.picture(f"died-en-desktop-{kind}")
    window.page.locator("#again").click()
    expect(window.page.locator("#trouble")).to_be_hidden(timeout=START_MS)
    expect(window.page.locator("#progress")).to_be_hidden(timeout=START_MS)
    window.press("wait-6")
    assert window.page.url.endswith("#seed=7&do=place,wait-6")
    assert before != ""


def test_files_that_cannot_be_loaded_are_named(opened: Callable[..., Opened]) -> None:
    window = opened("en", "desktop")
    window.page.context.route("**/modules.zip.bin", lambda route: route.fulfill(status=503))
    window.page.locator("#start").click()
    expect(window.page.locator("#trouble")).to_contain_text("modules.zip.bin cannot be loaded: 503", timeout=START_MS)


def test_from_a_file_the_page_says_what_to_do(browser: Callable[[str], Browser]) -> None:
    page = browser("chromium").new_page()
    page.goto((ROOT / "docs" / "play" / "index.html").as_uri())
    expect(page.locator("#begin")).to_contain_text("http.server")
    expect(page.locator("#start")).to_be_disabled()
    page.close()


def test_a_page_whose_files_are_not_built_says_what_to_do(site: Site, browser: Callable[[str], Browser]) -> None:
    page = browser("chromium").new_page()
    page.route("**/manifest.json", lambda route: route.fulfill(status=404))
    page.goto(site.address)
    expect(page.locator("#begin")).to_contain_text("make site")
    page.close()
