"""Tests of `make up` and its console in a real browser: all pages, a manual decision, and scenarios.

With CONSOLE_PICTURES=docs/console a screenshot of each page is saved there.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Route, expect

from demo.processes import PROJECT_ROOT
from demo.scenarios.failpoints import FAILPOINTS, FailpointFolder
from demo.scenarios.ledger import Ledgers
from rocketmq_broker.client import EventLoopThread, Message, Producer, TransactionProducer
from tests.dead_proxies import DEAD_PROXIES
from tests.foreign.browser.browser import DESKTOP, PATIENCE_MS, PHONE, Window, chromium
from tests.unit.testing.listeners import UNKNOWN, Transactions
from tests.waiting import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SPARK_MS = 600_000
PICTURES = os.environ.get("CONSOLE_PICTURES")
FREE_PORTS = [f"--{name}port=0" for name in ("", "order-", "credit-", "inventory-", "namesrv-", "broker-")]


class Up:
    """A separate `make up` on free ports."""

    def __init__(self, folder: Path) -> None:
        self.data = folder / "data"
        self._output = folder / "output"
        with self._output.open("wb") as output:
            environment = {**os.environ, **DEAD_PROXIES}
            self.popen = subprocess.Popen(
                self.command, cwd=PROJECT_ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
            )
        self.address = self.wait_for(r"(http://\S+)  \(after")
        self.wait_for("Everything is ready")
        self.addresses = json.loads((self.data / "running.json").read_text())["addresses"]
        self.order_url, self.namesrv_addr = self.addresses["order service"], self.addresses["name server"]

    @property
    def command(self) -> list[str]:
        return [sys.executable, "-m", "demo.up", *FREE_PORTS, "--data", str(self.data)]

    def output(self) -> str:
        return self._output.read_text()

    def wait_for(self, pattern: str) -> str:
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while (found := re.search(pattern, self.output())) is None:
            assert self.popen.poll() is None, self.output()
            assert time.monotonic() < deadline, self.output()
            time.sleep(0.1)
        return found[found.re.groups]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    running = Up(tmp_path_factory.mktemp("up"))
    yield running
    if running.popen.poll() is None:
        running.popen.kill()  # what it started ends with it
        running.popen.wait()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture
def window(up: Up, browser: Browser) -> Iterator[Window]:
    page = browser.new_page(viewport=DESKTOP)
    opened = Window(page, up.address)
    yield opened
    page.close()
    assert opened.complaints == []


@pytest.fixture
def loop() -> Iterator[EventLoopThread]:
    running = EventLoopThread()
    running.start()
    yield running
    running.stop()


def picture(window: Window, name: str, height: int = 720) -> None:
    if PICTURES:
        window.keep_picture(Path(PICTURES) / f"{name}.webp", height)


def order(up: Up, customer: str) -> str:
    body = {"customer": customer, "items": [{"name": "book", "quantity": 1, "price_cents": 2599}]}
    order_id: str = httpx.post(f"{up.order_url}/orders", json=body, timeout=60).json()["order"]["order_id"]
    return order_id


def test_the_first_page_is_there_before_the_services_are(up: Up) -> None:
    output = up.output()
    assert output.index(up.address) < output.index("Everything is ready")


def test_a_second_one_says_what_runs_and_starts_nothing(up: Up) -> None:
    second = subprocess.run(up.command, cwd=PROJECT_ROOT, capture_output=True, text=True, timeout=60)
    assert second.returncode == 2
    assert f"is already running as process {up.popen.pid}: {up.address}" in second.stdout
    assert f"kill {up.popen.pid}" in second.stdout


SCREENS = {
    "start": ("/?customer=ada", "PLACED"),
    "overview": ("/overview", "No problems found."),
    "running": ("/running", "order_service"),
    "scenarios": ("/scenarios", "The order service dies before COMMIT"),
    "failpoints": ("/failpoints", "exit-before-acknowledgement"),
    "second-opinion": ("/second-opinion", "Ask Spark"),
    "pending": ("/pending", "No pending transactions"),
    "discarded": ("/discarded", "No discarded messages."),
    "dead-letters": ("/dead-letters", "No dead letters."),
    "decided": ("/decided", "No transactions decided by hand."),
    "topics": ("/topics", "orders"),
    "topic": ("/topic?topic=orders", "credit_service"),
    "tail": ("/topic/tail?topic=orders", "customer"),
    "groups": ("/groups", "credit_service"),
    "group": ("/group?group=credit_service", "Members"),
    "clients": ("/clients", "order_service"),
    "messages": ("/messages?word={order_id}&topic=orders", "credit_service has consumed it"),
    "transaction": ("/transaction?word={order_id}", "points"),
    "record": ("/record?offset=0", "MAGICCODE"),
}


@pytest.fixture(scope="module")
def order_id(up: Up) -> str:
    """Places an order, waits until the console shows that its message is consumed, and returns the order id."""
    placed = order(up, "ada")
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while "has consumed it" not in httpx.get(f"{up.address}/messages?word={placed}&topic=orders").text:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    return placed


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_shows_what_there_is(name: str, order_id: str, window: Window) -> None:
    path, text = SCREENS[name]
    window.goto(path.format(order_id=order_id))
    window.sees(text)
    picture(window, name, height=1100 if name in ("transaction", "record") else 720)
    window.page.set_viewport_size(PHONE)
    assert window.is_as_wide_as_the_screen()


@pytest.mark.parametrize("service", ["order service", "credit service", "inventory service"])
@pytest.mark.parametrize("path", ["/", "/docs"])
def test_the_pages_of_a_service_fit_on_a_phone(service: str, path: str, up: Up, browser: Browser) -> None:
    page = browser.new_page(viewport=PHONE)
    window = Window(page, up.addresses[service])
    window.goto(path)
    assert window.is_as_wide_as_the_screen()
    page.close()
    assert window.complaints == []


def test_the_docs_of_a_service_send_an_order_and_then_ask_for_it(up: Up, browser: Browser) -> None:
    page = browser.new_page(viewport=DESKTOP)
    window = Window(page, up.order_url)
    window.goto("/docs")
    placing, asking = page.locator("#post_orders"), page.locator("#get_orders_order_id_timeline")
    body = placing.get_by_label("body")
    body.fill(body.input_value().replace("ada", "lin"))
    placing.get_by_role("button").click()
    expect(placing.get_by_role("status")).to_contain_text("201 CREATED")
    expect(placing.get_by_role("status")).to_contain_text('"customer": "lin"')
    asking.get_by_role("button").click()
    expect(asking.get_by_role("status")).to_contain_text("200 OK")
    picture(window, "docs")
    page.set_viewport_size(PHONE)
    assert window.is_as_wide_as_the_screen()
    page.close()
    assert window.complaints == []


def test_on_a_phone_the_name_of_the_open_screen_is_in_view(up: Up, browser: Browser) -> None:
    page = browser.new_page(viewport=PHONE)
    Window(page, up.address).goto("/messages")
    expect(page.locator("nav [aria-current]")).to_be_in_viewport(ratio=1)
    page.close()


@pytest.mark.skipif(shutil.which("java") is None, reason="no java on the PATH: apt-get install openjdk-17-jre-headless")
@pytest.mark.release
def test_spark_gives_a_second_opinion(order_id: str, window: Window) -> None:
    window.goto("/second-opinion")
    window.page.get_by_role("button", name="Ask Spark").click()
    window.sees("Spark has been comparing for")
    expect(window.page.get_by_role("button", name="Ask Spark")).to_be_disabled()
    expect(window.page.get_by_role("status").last).to_contain_text("The books agree.", timeout=SPARK_MS)
    expect(window.page.locator("tbody tr").first).to_contain_text("matched")


def test_a_page_is_drawn_anew_without_being_loaded_anew(up: Up, order_id: str, window: Window) -> None:
    window.goto("/topic/tail?topic=orders")
    window.page.evaluate("window.isTheSamePage = true")
    window.sees(order(up, "grace"))
    assert window.page.evaluate("window.isTheSamePage")
    window.page.get_by_role("button", name="Pause").click()
    expect(window.page.locator("#live-state")).to_have_text("paused")


def test_the_pages_are_used_by_keyboard(window: Window) -> None:
    window.goto("/")
    window.page.keyboard.press("Tab")
    expect(window.page.locator(":focus")).to_have_text("Skip to content")
    window.page.get_by_role("textbox", name="Search", exact=True).focus()
    window.page.keyboard.type("nobody-knows-it")
    window.page.keyboard.press("Enter")
    window.sees("No message or transaction with the id or key nobody-knows-it.")


def test_the_pages_follow_the_visitors_choice_of_light_or_dark(browser: Browser, up: Up) -> None:
    grounds = []
    for scheme in ("light", "dark"):
        page = browser.new_page(viewport=DESKTOP, color_scheme=scheme)
        window = Window(page, up.address)
        window.goto("/scenarios")
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        if scheme == "dark":
            picture(window, "dark")
        page.close()
    assert grounds[0] != grounds[1]


def test_a_pending_transaction_is_decided_by_hand(up: Up, window: Window, loop: EventLoopThread) -> None:
    shop = TransactionProducer("test_shop", Transactions(UNKNOWN, UNKNOWN), namesrv_addr=up.namesrv_addr, send_timeout_ms=60_000)
    loop.run(shop.start(), timeout_s=90)
    message = Message.of("payments", b'{"paid": true}', keys=["payment-1"])
    sent = loop.run(shop.send_message_in_transaction(message), timeout_s=90)
    window.goto("/pending")
    window.sees("payment-1")
    picture(window, "pending")
    window.page.get_by_role("link", name=str(sent.transaction_id)).click()
    reason = window.page.get_by_label("Reason")
    reason.fill("the bank says that it is paid")
    expect(window.page.locator(".timeline")).to_contain_text("answers UNKNOWN")  # drawn again; the form keeps its text
    expect(reason).to_have_value("the bank says that it is paid")
    picture(window, "decide", height=1150)
    window.page.get_by_label("I confirm that the decision cannot be undone").check()
    window.page.get_by_role("button", name="COMMIT: deliver it").click()
    window.sees("committed: the transaction at half offset")
    window.sees("COMMIT by hand (the bank says that it is paid)")
    window.goto("/decided")
    window.sees("the bank says that it is paid")
    picture(window, "decided")
    loop.run(shop.shutdown(), timeout_s=90)


def test_a_dead_letter_is_dismissed_with_a_reason(up: Up, window: Window, loop: EventLoopThread) -> None:
    maker = Producer("test_maker", namesrv_addr=up.namesrv_addr, send_timeout_ms=60_000)
    loop.run(maker.start(), timeout_s=90)
    loop.run(maker.send(Message.of("orders", b"<b>no order</b>", tags="created", keys=["odd-1"])), timeout_s=90)
    loop.run(maker.shutdown(), timeout_s=90)
    window.goto("/dead-letters")
    window.page.get_by_role("link", name="credit_service").click()
    window.page.locator("td a.id").first.click()
    window.sees("<b>no order</b>")
    picture(window, "dead-letter")
    live: list[Route] = []
    window.page.route("**/*", lambda route: live.append(route) if _is_live(route) else route.continue_())
    window.page.reload()
    dismissal = window.page.locator('form[action="/dead-letter/dismiss"]')
    dismissal.get_by_label("Reason").fill("sent by a test")
    dismissal.get_by_role("button").hover()
    window.page.mouse.down()
    live[0].continue_()
    window.page.unroute_all(behavior="ignoreErrors")  # the next page's updates come, too
    expect(window.page.locator("#live-state")).to_have_text("live")
    window.page.mouse.up()  # an update between press and release loses no click
    window.sees("reason: sent by a test")


def _is_live(route: Route) -> bool:
    return route.request.resource_type == "eventsource"


def _asks_until_answered(up: Up, failpoint: str) -> None:
    """Repeats an order with the same Idempotency-Key until the response requires no retry."""
    customer = f"meets-{failpoint}"
    price_cents = 1_000_001 if failpoint == "lose-rollback" else 2_599
    items = [{"name": "book", "quantity": 1, "price_cents": price_cents}]
    payment = "later" if "check-back" in failpoint else "now"
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < deadline:
        try:
            answer = httpx.post(
                f"{up.order_url}/orders",
                json={"customer": customer, "items": items, "payment": payment},
                headers={"Idempotency-Key": customer},
                timeout=60,
            )
        except httpx.TransportError:
            time.sleep(0.3)
            continue
        if answer.is_success or answer.json()["title"] == "Order refused":
            break
        time.sleep(0.3)


def test_each_failpoint_is_armed_over_http_hit_once_and_what_it_broke_is_mended(up: Up) -> None:
    folder = FailpointFolder(up.data / "failpoints")
    names = [failpoint.name for failpoint in FAILPOINTS]
    with httpx.Client(base_url=up.address, timeout=60) as console:
        token = re.findall(r'name="csrf" value="([^"]+)"', console.get("/failpoints").text)[0]
        refused = console.post("/failpoints/arm", data={"failpoint": "lose-commit", "meant_for": "ada"})
        assert (refused.status_code, folder.armed()) == (403, {})
        for name in names:
            form = {"csrf": token, "failpoint": name, "meant_for": f"meets-{name}"}
            assert console.post("/failpoints/arm", data=form).is_redirect
    assert list(folder.armed()) == names
    deaths = [name for name in names if name.startswith("exit-")]
    for name in deaths:  # one after the other: a death that stops another order on its way keeps that from its failpoint
        _asks_until_answered(up, name)
        wait_until(lambda: name not in folder.armed())  # noqa: B023 (it is called in the loop)
    others = [name for name in names if name not in deaths]
    with ThreadPoolExecutor(len(others)) as customers:
        list(customers.map(lambda name: _asks_until_answered(up, name), others))
    ledgers = Ledgers(f"sqlite:///{up.data}/orders.db", f"sqlite:///{up.data}/credits.db")
    for name in names:
        wanted = 0 if name == "lose-rollback" or "check-back" in name else 1
        wait_until(lambda: ledgers.credits_of(f"meets-{name}") == wanted)  # noqa: B023 (it is called in the loop)
    wait_until(lambda: sorted(hit.failpoint for hit in folder.hits()) == sorted(names))
    assert folder.armed() == {}
    for name in names:
        assert ledgers.credits_of(f"meets-{name}") <= 1


@pytest.mark.parametrize("title", ["COMMIT is lost", "The order service dies before COMMIT", "The broker is killed"])
def test_a_scenario_is_played_from_the_click_to_the_verdict(title: str, up: Up, window: Window) -> None:
    window.goto("/scenarios")
    button = window.page.get_by_role("button", name=f"Play it: {title}", exact=True)
    expect(button).to_be_enabled()
    button.click()
    window.sees("POST /orders: one book for")
    window.sees_end_of_run()
    window.sees("As expected: One order, one credit")
    is_dead = title == "The order service dies before COMMIT"  # its end is drawn then: no COMMIT was sent that could be lost
    expect(window.page.locator("svg.sequence .lost")).to_have_count(0 if is_dead else 1)
    expect(window.page.locator("svg.sequence")).to_contain_text("the process ends" if is_dead else "COMMIT")
    expect(window.page.locator("svg.sequence")).to_contain_text("25 points")
    if is_dead:
        picture(window, "run", height=1500)


@pytest.mark.parametrize(
    ("title", "verdict", "seen"),
    [
        ("A message becomes a dead letter", "As expected: No order, no credit, and one dead letter", "total_cents: Field requi"),
        ("The broker gives up a half message", "As expected: One order that awaits its payment", "discarded"),
    ],
)
def test_a_scenario_that_leaves_a_message_for_a_person_is_played(title: str, verdict: str, seen: str, window: Window) -> None:
    window.goto("/scenarios")
    button = window.page.get_by_role("button", name=f"Play it: {title}", exact=True)
    expect(button).to_be_enabled()
    button.click()
    window.sees_end_of_run()
    window.sees(verdict)
    expect(window.page.locator("svg.sequence")).to_contain_text(seen)


def test_it_ends_with_everything_that_it_started(up: Up) -> None:
    up.popen.send_signal(signal.SIGTERM)
    assert up.popen.wait(timeout=60) == 0, up.output()
    assert "All processes are stopped." in up.output()
    assert not (up.data / "running.json").exists()
    assert (up.data / "orders.db").exists()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{up.order_url}/livez")
