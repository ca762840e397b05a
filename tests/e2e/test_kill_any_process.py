"""kill -9 of any one process while orders are placed, then its restart: nothing is lost, nothing is doubled."""

import threading
import time
from collections import Counter

import pytest

from demo.books import Books
from demo.orders import OrderClient, Outcome, make_orders, place_all
from demo.processes import Process
from demo.system import System

pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(900)]
ORDERS = 120
LIMIT_CENTS = 1_000_000
SETTLE_SECONDS = 120


@pytest.mark.parametrize("victim", ["broker", "order_service", "credit_service", "worker", "redis"])
def test_kill_during_orders_loses_and_doubles_nothing(system: System, victim: str) -> None:
    system.start()
    requests = list(make_orders(ORDERS, refused_every=10, limit_cents=LIMIT_CENTS))
    answered = threading.Semaphore(0)
    killer = threading.Thread(target=_kill_after, args=(answered, ORDERS // 3, getattr(system, victim)))
    killer.start()

    answers, _ = place_all(OrderClient(system.order_url), requests, concurrency=8, on_answer=lambda answer: answered.release())

    killer.join()
    books = Books(system.order_database_url, system.credit_database_url)
    placed = {answer.order_id for answer in answers if answer.outcome is Outcome.PLACED}
    _wait_until_settled(books)
    credits = Counter(credit.order_id for credit in books.credits())
    assert len(placed) == ORDERS - ORDERS // 10
    assert set(books.orders()) == placed, "each order is in the database once, whatever its client had to repeat"
    assert credits == Counter(placed), "each order has its credit once, and nothing else has one"


def _kill_after(answered: threading.Semaphore, count: int, process: Process) -> None:
    for _ in range(count):
        answered.acquire(timeout=60)
    process.kill()
    process.start()


def _wait_until_settled(books: Books) -> None:
    """Until every order has its credit, and then a little longer for a second one to show."""
    deadline = time.monotonic() + SETTLE_SECONDS
    while books.credited() < books.placed() and time.monotonic() < deadline:
        time.sleep(0.2)
    time.sleep(5)
