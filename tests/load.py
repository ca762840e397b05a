"""Customers who place orders without a break, while a test kills, stops and restarts processes."""

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx

from demo.asking import ask
from demo.orders import CUSTOMERS, MadeOrder, OrderClient
from tests.waiting import wait_until

CUSTOMERS_AT_ONCE = 4
SOME = 40
"""The number of orders that are placed between two faults, at least."""
PATIENCE_S = 300
"""On a loaded machine a JVM takes a minute to start."""
UNPAID = 16
"""The number of orders that are placed to be paid later."""


class CountedRequests(httpx.HTTPTransport):
    """Counts requests by the status of their response, or by the name of the error."""

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: Counter[int | str] = Counter()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends the request. Raises httpx.TransportError."""
        try:
            response = super().handle_request(request)
        except httpx.TransportError as error:
            self.outcomes[type(error).__name__] += 1
            raise
        self.outcomes[response.status_code] += 1
        return response


@dataclass(frozen=True)
class Load:
    """Customers who place orders during a block. Each repeats a request until its order is placed."""

    url: str
    transport: CountedRequests = field(default_factory=CountedRequests)
    placed: list[str] = field(default_factory=list)
    """The ids of the placed orders."""
    _is_over: threading.Event = field(default_factory=threading.Event)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Raises the errors of the customers at the end."""
        with (
            ThreadPoolExecutor(CUSTOMERS_AT_ONCE) as pool,
            OrderClient(self.url, patience_s=PATIENCE_S, transport=self.transport) as client,
        ):
            customers = [pool.submit(self._buy, client) for _ in range(CUSTOMERS_AT_ONCE)]
            try:
                yield
            finally:
                self._is_over.set()
                errors = [customer.exception() for customer in customers]
        assert not any(errors), errors

    def go_on(self) -> None:
        """Waits until some more orders have been placed."""
        goal = len(self.placed) + SOME
        wait_until(lambda: len(self.placed) >= goal, PATIENCE_S)

    def _buy(self, client: OrderClient) -> None:
        while not self._is_over.wait(0.05):
            number = next(self._numbers)
            order = MadeOrder(f"load-{number}", CUSTOMERS[number % len(CUSTOMERS)], (("book", 1 + number % 3, 1_299),))
            self.placed.append(str(client.place(order).order_id))


def post(url: str, body: dict[str, object]) -> httpx.Response:
    """Sends the request until the service is available. Returns its response."""
    while (response := ask("POST", url, body, timeout_s=60)).status_code == httpx.codes.SERVICE_UNAVAILABLE:
        time.sleep(0.2)
    assert response.is_success, response.text
    return response


def place_unpaid(url: str) -> list[str]:
    """Places orders that are paid later, whose half messages stay pending. Returns their ids."""
    body = {"customer": "ada", "items": [{"name": "lamp", "quantity": 1, "price_cents": 4_999}], "payment": "later"}
    return [post(f"{url}/orders", body).json()["order"]["order_id"] for _ in range(UNPAID)]
