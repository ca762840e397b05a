"""Customers who place, pay and cancel orders without a break, and who sometimes leave before the response."""

import itertools
import random
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import httpx

from demo.orders import CUSTOMERS
from lab.judged.observations import Interval, Observations, ObservedRequest
from lab.judged.operations import UNKNOWN, result_of

AT_ONCE = 4
ABANDONED = 0.05
"""The share of the requests whose connection the customer closes before the response."""
_ITEM = {"name": "book", "quantity": 1, "price_cents": 1_299}
_TOO_MUCH = {"name": "piano", "quantity": 1, "price_cents": 1_000_001}


@dataclass(frozen=True)
class JudgedCustomers:
    """Customers of one order service. Each request is observed, and repeated until its response is final."""

    url: str
    observations: Observations
    chance: random.Random
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def run(self) -> None:
        """Buys until the run is over. Each order is then decided."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for customer in [pool.submit(self._buy_again_and_again) for _ in range(AT_ONCE)]:
                customer.result()

    def _buy_again_and_again(self) -> None:
        with httpx.Client(base_url=self.url, trust_env=False) as client:
            while not self.observations.is_over.wait(0.05):
                self._buy(client, f"judged-{next(self._numbers)}")

    def _buy(self, client: httpx.Client, key: str) -> None:
        name = self.chance.choices(("place", "place later", "place too much"), (7, 2, 1))[0]
        body = {
            "customer": self.chance.choice(CUSTOMERS),
            "items": [_TOO_MUCH if name == "place too much" else _ITEM],
            **({"payment": "later"} if name == "place later" else {}),
        }
        placed = self._until_final(client, key, name, "/orders", body)
        if name == "place later" and placed.order_id:
            self.observations.is_over.wait(self.chance.uniform(0, 3))
            name, path, of_request = self.chance.choice(
                (("pay", "payment", {}), ("cancel", "cancellation", {"reason": "by the customer"}))
            )
            self._until_final(client, key, name, f"/orders/{placed.order_id}/{path}", of_request)

    def _until_final(self, client: httpx.Client, key: str, name: str, path: str, body: Mapping[str, object]) -> ObservedRequest:
        while True:
            observed = self._request(client, key, name, path, body)
            if observed is not None and result_of(observed) != UNKNOWN:
                return observed
            time.sleep(self.chance.uniform(0.1, 0.5))

    def _request(
        self, client: httpx.Client, key: str, name: str, path: str, body: Mapping[str, object]
    ) -> ObservedRequest | None:
        """Sends the request once. Returns None if it was not sent, because no connection could be opened."""
        timeout = self.chance.uniform(0.005, 0.05) if self.chance.random() < ABANDONED else 15
        called = time.monotonic_ns()
        try:
            response = client.post(path, json=body, headers={"Idempotency-Key": key}, timeout=httpx.Timeout(timeout, connect=5))
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return None
        except httpx.TransportError:
            response = None
        at = Interval(called, time.monotonic_ns())
        observed = ObservedRequest(key, name, at, None if response is None else response.status_code, _order_id(response))
        self.observations.found.append(observed)
        return observed


def _order_id(response: httpx.Response | None) -> str:
    if response is None or response.status_code not in (httpx.codes.OK, httpx.codes.CREATED):
        return ""
    placed = response.json()
    return str(placed["order"]["order_id"] if "order" in placed else placed["order_id"])
