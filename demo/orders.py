"""Places customers' orders over HTTP. The client repeats each request until the service returns a final response."""

import random
import time
import uuid
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import Enum, auto
from types import TracebackType
from typing import Self

import httpx
import stamina

from demo.errors import DemoError

CUSTOMERS = tuple(f"customer-{number:02}" for number in range(1, 21))
_AGAIN = frozenset(
    {
        httpx.codes.ACCEPTED,
        httpx.codes.TOO_MANY_REQUESTS,
        httpx.codes.SERVICE_UNAVAILABLE,
        # A balancer returns them if the service behind it was killed or is too slow.
        httpx.codes.BAD_GATEWAY,
        httpx.codes.GATEWAY_TIMEOUT,
    }
)
"""The statuses after which a request is repeated."""
_ITEMS = (("book", 1_250), ("lamp", 4_999), ("chair", 12_900), ("pencil", 95), ("kettle", 3_450))


class PlacingOutcome(Enum):
    """The outcome of a request, according to the final response of the order service."""

    PLACED = auto()
    REFUSED = auto()
    """The order was refused, because its local transaction failed."""


@dataclass(frozen=True, slots=True)
class MadeOrder:
    """The request for an order. Because of the idempotency key, a repeated request does not place a second order."""

    idempotency_key: str
    customer: str
    items: tuple[tuple[str, int, int], ...]
    """The name, the quantity and the price in cents of each item."""

    def as_json(self) -> dict[str, object]:
        """Returns the body of POST /orders."""
        items = [{"name": name, "quantity": quantity, "price_cents": price} for name, quantity, price in self.items]
        return {"customer": self.customer, "items": items}


@dataclass(frozen=True, slots=True)
class OrderAnswer:
    """The final response of the order service, and the number of attempts."""

    request: MadeOrder
    outcome: PlacingOutcome
    order_id: str | None
    attempts: int
    answered_at_s: float
    """The time of the answer in seconds on the monotonic clock."""


class UnexpectedAnswer(DemoError):
    """Raised for an unexpected response from the order service, if repeating the request would not help."""


class NoAnswer(DemoError):
    """Raised if the order service did not return a final response in time."""


class _NoAnswerYet(Exception):
    """Raised if the service is down, is busy, or cannot reach its broker. The request must be repeated."""


class OrderClient:
    """Places orders. Thread-safe."""

    def __init__(
        self,
        url: str,
        *,
        api_key: str = "",
        patience_s: float = 120,
        first_wait_s: float = 0.1,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """Creates a client. `api_key` is the order service's API key, if it has one.

        `patience_s` is the timeout for an order including all repetitions. The first repetition is sent after `first_wait_s`.
        `transport` replaces the network.
        """
        headers = {b"Authorization": f"Bearer {api_key}".encode()} if api_key else {}
        self._client = httpx.Client(base_url=url, timeout=15, headers=headers, transport=transport, trust_env=False)
        self._patience_s = patience_s
        self._first_wait_s = first_wait_s

    def __enter__(self) -> Self:
        """Returns this client. Its connections are closed after the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stops all requests. A running `place` raises RuntimeError in its thread."""
        self._client.close()

    def place(self, request: MadeOrder) -> OrderAnswer:
        """Places the order, and repeats the request if necessary.

        Raises UnexpectedAnswer, or NoAnswer after the timeout.
        """
        try:
            return self._ask_until_answered(request)
        except _NoAnswerYet as error:
            url = self._client.base_url
            raise NoAnswer(f"the order service at {url} did not respond for {self._patience_s:g} s: {error}") from None

    def _ask_until_answered(self, request: MadeOrder) -> OrderAnswer:
        for attempt in stamina.retry_context(
            on=_NoAnswerYet,
            attempts=None,
            timeout=self._patience_s,
            wait_initial=self._first_wait_s,
            wait_max=1.0,
            wait_jitter=self._first_wait_s,
        ):
            with attempt:
                return self._ask(request, attempt.num)
        raise AssertionError("unreachable: stamina returns or raises")

    def _ask(self, request: MadeOrder, attempts: int) -> OrderAnswer:
        try:
            response = self._client.post("/orders", json=request.as_json(), headers={"Idempotency-Key": request.idempotency_key})
        except httpx.TransportError as error:
            raise _NoAnswerYet(str(error)) from error
        match response.status_code:
            case httpx.codes.OK | httpx.codes.CREATED:
                return OrderAnswer(
                    request, PlacingOutcome.PLACED, response.json()["order"]["order_id"], attempts, time.monotonic()
                )
            case httpx.codes.CONFLICT:
                return OrderAnswer(request, PlacingOutcome.REFUSED, None, attempts, time.monotonic())
            case code if code in _AGAIN:
                raise _NoAnswerYet(response.text)
            case httpx.codes.UNAUTHORIZED:
                raise UnexpectedAnswer("the order service requires its API key; set ORDER_API_KEY_FILE to the file with it")
        raise UnexpectedAnswer(f"POST /orders returned {response.status_code}: {response.text[:300]}")


def make_orders(count: int, *, refused_every: int, limit_cents: int, seed: int = 7) -> Iterator[MadeOrder]:
    """Yields orders with a few items each.

    Every `refused_every`th order exceeds the limit, so that its local transaction fails.
    """
    chance = random.Random(seed)
    for number in range(1, count + 1):
        items = tuple((name, chance.randint(1, 3), price) for name, price in chance.sample(_ITEMS, chance.randint(1, 3)))
        if number % refused_every == 0:
            items = (("piano", 1, limit_cents + 1),)
        yield MadeOrder(str(uuid.uuid4()), chance.choice(CUSTOMERS), items)


def busiest_second(answers: Iterable[OrderAnswer]) -> int:
    """Returns the maximum number of orders placed within one second."""
    times = sorted(answer.answered_at_s for answer in answers if answer.outcome is PlacingOutcome.PLACED)
    return max((bisect_left(times, start + 1) - index for index, start in enumerate(times)), default=0)


def place_all(
    client: OrderClient, requests: list[MadeOrder], *, concurrency: int, on_answer: Callable[[OrderAnswer], None]
) -> tuple[list[OrderAnswer], float]:
    """Places the orders, `concurrency` at a time.

    Returns the responses in the order in which they arrived, and the duration in seconds.
    """
    started = time.monotonic()
    answers = []
    pool = ThreadPoolExecutor(concurrency, thread_name_prefix="customer")
    try:
        for placed in as_completed([pool.submit(client.place, request) for request in requests]):
            answers.append(placed.result())
            on_answer(answers[-1])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return answers, time.monotonic() - started
