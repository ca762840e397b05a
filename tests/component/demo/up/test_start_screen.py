"""Tests of the first page of `make up`: running processes, an order form, filtered transactions, and the scenarios."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import httpx
import pytest
from starlette.testclient import TestClient

from demo.scenarios.failpoints import FailpointFolder
from demo.scenarios.ledger import RecentTransaction
from demo.scenarios.plays import SCENARIOS
from demo.scenarios.runs import Runs
from demo.system import System
from demo.up.keeper import Health, Keeper
from demo.up.screens import extension
from demo.up.second_opinion import SecondOpinion
from demo.up.shop import GRPC, Shop, steps_of
from rocketmq_broker.admin.console import ConsoleSettings, Visit, create_console
from rocketmq_broker.admin.console.brokers import Brokers
from rocketmq_broker.admin.errors import CannotAsk, Refused
from rocketmq_broker.admin.session import Target
from rocketmq_broker.testing import SyncRocketMQ
from tests.unit.admin.console.visitor import PAGE_OF_CONSOLE, Visitor, text_of

ORDER_URL = "http://127.0.0.1:8080"
ADDRESSES = {"order service": ORDER_URL, "name server": "127.0.0.1:9876", GRPC: "127.0.0.1:8083"}
ORDERS = [("A-17", "ada", "PLACED"), ("B-18", "grace", "CANCELLED"), ("C-19", "50%_ada", "AWAITING_PAYMENT")]


@pytest.fixture
def system(tmp_path: Path) -> System:
    """Returns a system without processes.

    Its order database has three orders, and a rolled back transaction without an order.
    """
    with closing(sqlite3.connect(tmp_path / "orders.db")) as orders:
        orders.execute("CREATE TABLE orders (order_id, customer, total_cents, created_at_ms, state)")
        orders.execute("CREATE TABLE transactions (transaction_id, order_id, state, created_at_ms, kind DEFAULT 'order')")
        orders.executemany("INSERT INTO orders VALUES (?, ?, 2599, 5, ?)", ORDERS)
        rows = [(f"T{index}", order_id, "COMMITTED", index) for index, (order_id, _, _) in enumerate(ORDERS)]
        rows += [("T9", None, "ROLLED_BACK", 9)]
        orders.executemany("INSERT INTO transactions (transaction_id, order_id, state, created_at_ms) VALUES (?, ?, ?, ?)", rows)
        orders.commit()
    with closing(sqlite3.connect(tmp_path / "credits.db")) as credits:
        credits.execute("CREATE TABLE credits (order_id, transaction_id, points, created_at_ms)")
        credits.execute("INSERT INTO credits VALUES ('A-17', 'T0', 25, 103)")
        credits.commit()
    names = {"order_url": ORDER_URL, "order_database_url": f"sqlite:///{tmp_path}/orders.db"}
    return cast(System, SimpleNamespace(**names, credit_database_url=f"sqlite:///{tmp_path}/credits.db", consumers=()))


@pytest.fixture
def keeper() -> Keeper:
    healths = {"broker": Health.READY, "order_service": Health.READY}
    return cast(Keeper, SimpleNamespace(is_all_ready=True, healths=healths))


@pytest.fixture
def runs(system: System, keeper: Keeper, tmp_path: Path) -> Runs:
    return Runs(system, keeper, FailpointFolder(tmp_path))


@pytest.fixture
def opinion() -> object:
    return None


@pytest.fixture
def visitor(system: System, keeper: Keeper, runs: Runs, opinion: object, rocketmq: SyncRocketMQ) -> Iterator[Visitor]:
    added = extension(system, keeper, runs, cast(SecondOpinion, opinion), ADDRESSES)
    app = create_console(ConsoleSettings(), Target(namesrv_addr=rocketmq.namesrv_addr), added)
    with TestClient(app, base_url=PAGE_OF_CONSOLE) as client:
        yield Visitor(client)


def opinion_of(**spark: object) -> object:
    return SimpleNamespace(spark=SimpleNamespace(**spark), latest=lambda: None)


@pytest.mark.parametrize(
    ("opinion", "sees", "button"),
    [
        (opinion_of(is_complete=True, has_failed=False, last_line=""), "Ask Spark", ["ask-spark"]),
        (opinion_of(is_complete=False, has_failed=False, last_line="3 of 6 packages fetched"), "3 of 6 packages fetched", []),
        (opinion_of(is_complete=False, has_failed=True, last_line="Java 17 is missing"), "Java 17 is missing", ["install-spark"]),
    ],
)
def test_the_second_opinion_is_offered_once_spark_is_there(sees: str, button: list[str], visitor: Visitor) -> None:
    assert sees in visitor.sees("/second-opinion")
    assert re.findall(r'<button id="([a-z-]+-spark)"', visitor.html("/second-opinion")) == button


def test_the_first_page_says_what_runs_with_links_and_offers_each_scenario(visitor: Visitor) -> None:
    html, seen = visitor.html("/"), visitor.sees("/")
    assert "broker ready order_service ready" in seen
    assert "Clients of RocketMQ 5 (gRPC): 127.0.0.1:8083" in seen
    assert f'<a href="{ORDER_URL}">order service</a>' in html
    assert f'href="{ORDER_URL}/docs"' in html
    assert all(f'name="scenario" value="{scenario.name}"' in html for scenario in SCENARIOS)
    assert "No problems found" in visitor.sees("/overview")
    assert '<a href="/overview">Overview</a>' in html


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["T9", "T2", "T1", "T0"]),
        ("customer=ADA", ["T2", "T0"]),
        ("customer=50%25_", ["T2"]),
        ("order=A-1", ["T0"]),
        ("order=T1", ["T1"]),
        ("state=ROLLED_BACK", ["T9"]),
        ("state=PLACED&customer=ada", ["T0"]),
        ("customer=' OR 1=1", []),
    ],
)
def test_recent_transactions_are_filtered_by_customer_order_and_state(query: str, shown: list[str], visitor: Visitor) -> None:
    seen = visitor.sees(f"/?{query}")
    found = sorted(
        (word for word in ("T0", "T1", "T2", "T9") if f"…{word} " in f"{seen} "), key=lambda word: seen.index(f"…{word}")
    )
    assert found == shown
    assert ("No transaction matches" in seen) is (not shown)


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("ADA", ["T2 50%_ada: order C-19, 25.99, AWAITING_PAYMENT", "T0 ada: order A-17, 25.99, PLACED"]),
        ("T", ["T9 a rolled back transaction without an order", "T1 grace: order B-18, 25.99, CANCELLED"]),
    ],
)
def test_the_search_finds_transactions_by_customer_and_by_the_begin_of_an_id(
    word: str, shown: list[str], visitor: Visitor
) -> None:
    seen = visitor.sees(f"/search?word={word}")
    assert all(line in seen for line in shown)


def test_the_search_leads_to_the_only_transaction_of_an_order(visitor: Visitor) -> None:
    answer = visitor.client.get("/search?word=B-1", follow_redirects=False)
    assert (answer.status_code, answer.headers["Location"]) == (303, "/transaction?word=T1")


def test_an_order_stands_beside_its_credit_with_the_steps_between_them(visitor: Visitor) -> None:
    ordered = visitor.sees("/?order=A-17")
    assert "Order ada 25.99 PLACED" in ordered
    assert "half message done local transaction done COMMIT done delivered done credited done" in ordered
    assert "Credit 25 points 103 ms later" in ordered
    assert "COMMIT unknown delivered not yet credited not yet" in visitor.sees("/?order=B-18")  # the broker has no such message
    assert "No order ROLLED_BACK" in visitor.sees("/?order=T9")
    assert "local transaction no ROLLBACK unknown" in visitor.sees("/?order=T9")


def test_the_screen_says_what_this_is_with_a_verdict_and_chapters(visitor: Visitor) -> None:
    seen = visitor.sees("/")
    assert "An order is a row in one database, its credit a row in another" in seen
    assert "Committed orders: 3. With a credit: 1. The others are on their way." in seen
    for path in re.findall(r'href="(/chapter[^"]*)"', visitor.html("/")):
        chapter = visitor.html(path)
        assert "<h2>" in chapter
        assert '<pre><code class="language-bash">' in chapter
    assert visitor.sees("/chapter?name=../README", 404).count("Unknown chapter")
    assert 'lang="zh"' in visitor.client.get("/chapter?name=see-it-happen&lang=zh").text


def test_credits_that_cannot_be_read_leave_the_orders_on_the_screen(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "credits.db").unlink()
    seen = visitor.sees("/?order=A-17")
    assert "no such table: credits" in seen
    assert "Order ada 25.99 PLACED" in seen
    assert "credited unknown" in seen
    assert "Committed orders" not in seen


@pytest.mark.parametrize(
    ("state", "steps"),
    [
        ("pending", "DONE DONE OPEN OPEN OPEN"),
        ("committed", "DONE DONE DONE OPEN OPEN"),
        ("discarded", "DONE DONE FAILED FAILED FAILED"),
        (None, "DONE DONE UNKNOWN OPEN OPEN"),
    ],
)
def test_the_steps_of_an_order_without_its_credit_are_as_the_broker_says(state: str | None, steps: str) -> None:
    row = RecentTransaction("T1", 1, "order", "COMMITTED", "PLACED", "A-17", "ada", 2599)
    found = steps_of(row, {}, {"T1": state} if state else None)
    assert " ".join(step.state.name for step in found) == steps


PEN = {"customer": "li", "article": "pen", "quantity": "1", "price": "1"}


@pytest.mark.parametrize(
    ("action", "fields", "sentence", "kept"),
    [
        ("/orders/place", {**PEN, "customer": "李雷", "quantity": "0"}, "The quantity must be an integer", "李雷"),
        ("/orders/place", {**PEN, "price": "1.999"}, "The price must be a number", "1.999"),
        ("/orders/place", {**PEN, "customer": "away"}, "does not respond", "away"),
        ("/orders/pay", {"order": "A-17"}, "The order service does not respond", ""),
        ("/orders/pay", {"order": "../x"}, "Invalid order id", ""),
        ("/scenarios/start", {"scenario": "none", "from": "start"}, "Unknown scenario none", ""),
    ],
)
def test_a_refused_form_comes_back_with_a_sentence_and_what_was_filled_in(
    action: str, fields: dict[str, str], sentence: str, kept: str, visitor: Visitor, rocketmq: SyncRocketMQ
) -> None:
    csrf = re.findall(r'name="csrf" value="([^"]*)"', visitor.html("/"))[0]
    for is_broker_away in (False, True):
        if is_broker_away:
            rocketmq.crash()
        answer = visitor.client.post(action, data={"csrf": csrf, **fields})
        assert answer.status_code in {422, 503}
        assert answer.text.count('id="refusal"') == 1
        assert sentence in text_of(answer.text)
        assert f'value="{kept}"' in answer.text
        assert 'id="place-order"' in answer.text
        assert '<a class="language" href="/?lang=zh"' in answer.text


def test_a_form_of_an_older_console_comes_back_filled_in(visitor: Visitor) -> None:
    visitor.html("/")
    answer = visitor.client.post("/orders/place", data={"csrf": "old", **FORM, "customer": "grace"})
    assert answer.status_code == 403
    assert "This page had expired, so nothing was done" in answer.text.replace("&#39;", "'")
    assert 'value="grace"' in answer.text


def test_the_form_needs_the_token_of_the_page(visitor: Visitor) -> None:
    assert visitor.client.post("/orders/place", data={"customer": "ada"}).status_code == 403


def shop_that_meets(answer: httpx.Response | httpx.TransportError, asked: list[httpx.Request]) -> Shop:
    def respond(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        if isinstance(answer, httpx.TransportError):
            raise answer
        return answer

    return Shop(
        cast(System, SimpleNamespace(order_url=ORDER_URL)),
        cast(Keeper, None),
        cast(Runs, None),
        ADDRESSES,
        httpx.MockTransport(respond),
    )


FORM = {"customer": "ada", "article": "book", "quantity": "2", "price": "12.9"}


def filled_in(**fields: str) -> Visit:
    return Visit(Brokers(Target()), {**FORM, **fields}, lambda: 0)


async def test_an_order_is_placed_as_the_form_says() -> None:
    asked: list[httpx.Request] = []
    shop = shop_that_meets(httpx.Response(201, json={"order": {"order_id": "A-17", "state": "PLACED"}}), asked)
    assert await shop.place(filled_in()) == "order A-17 of ada is PLACED"
    items = [{"name": "book", "quantity": 2, "price_cents": 1290}]
    assert json.loads(asked[0].content) == {"customer": "ada", "items": items, "payment": "now"}
    await shop.place(filled_in(payment="later"))
    assert json.loads(asked[1].content)["payment"] == "later"
    assert shop.after_order(filled_in()) == "/?customer=ada"


@pytest.mark.parametrize("fields", [{"quantity": "0"}, {"quantity": "many"}, {"price": "1.999"}, {"price": ""}, {"price": "-1"}])
async def test_a_form_that_makes_no_sense_reaches_no_service(fields: dict[str, str]) -> None:
    asked: list[httpx.Request] = []
    with pytest.raises(Refused):
        await shop_that_meets(httpx.Response(201), asked).place(filled_in(**fields))
    assert asked == []


async def test_a_refusal_and_a_silence_are_sentences() -> None:
    refusal = httpx.Response(409, json={"title": "Order refused", "detail": "10000.01 is above the limit"})
    with pytest.raises(Refused, match=r"returned 409 \(10000\.01 is above the limit\)"):
        await shop_that_meets(refusal, []).place(filled_in())
    with pytest.raises(CannotAsk, match="the order service does not respond: refused"):
        await shop_that_meets(httpx.ConnectError("refused"), []).place(filled_in())
