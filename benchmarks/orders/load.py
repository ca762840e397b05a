"""Places orders over HTTP, and notes the times of request and answer."""

from __future__ import annotations

import asyncio
import itertools
import time
from dataclasses import dataclass
from typing import Final

import httpx

_CUSTOMERS: Final = 50
_TIMEOUT_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class PlacedOrder:
    """An order that was answered with 201; times in seconds since the epoch."""

    order_id: str
    began_s: float
    answered_s: float


@dataclass(frozen=True, slots=True)
class Placing:
    """The result of a load."""

    orders: list[PlacedOrder]
    refused: int
    """Requests with any other answer, or none."""
    seconds: float


def place_at_rate(url: str, *, rate: float, seconds: float) -> Placing:
    """Starts `rate` orders a second, independent of the answers: a slow service does not slow the load."""
    return asyncio.run(_Load(url).at_rate(rate, seconds))


def place_in_flight(url: str, *, in_flight: int, seconds: float) -> Placing:
    """Keeps so many requests unanswered."""
    return asyncio.run(_Load(url).in_flight(in_flight, seconds))


class _Load:
    def __init__(self, url: str) -> None:
        self._url = f"{url}/orders"
        self._numbers = itertools.count()
        self._orders: list[PlacedOrder] = []
        self._refused = 0

    async def at_rate(self, rate: float, seconds: float) -> Placing:
        began_s, requests = time.monotonic(), []
        async with _client(500) as client:
            for number in range(round(rate * seconds)):
                await asyncio.sleep(began_s + number / rate - time.monotonic())
                requests.append(asyncio.create_task(self._place(client)))
            await asyncio.gather(*requests)
        return Placing(self._orders, self._refused, seconds)

    async def in_flight(self, in_flight: int, seconds: float) -> Placing:
        began_s = time.monotonic()
        async with _client(in_flight) as client:
            await asyncio.gather(*(self._place_until(client, began_s + seconds) for _ in range(in_flight)))
        return Placing(self._orders, self._refused, time.monotonic() - began_s)

    async def _place_until(self, client: httpx.AsyncClient, end_s: float) -> None:
        while time.monotonic() < end_s:
            await self._place(client)

    async def _place(self, client: httpx.AsyncClient) -> None:
        number = next(self._numbers)
        order = {
            "customer": f"customer-{number % _CUSTOMERS:02d}",
            "items": [{"name": "book", "quantity": 1, "price_cents": 1000 + number % 500}],
        }
        began_s = time.time()
        try:
            answer = await client.post(self._url, json=order)
        except httpx.HTTPError:
            self._refused += 1
            return
        if answer.status_code != httpx.codes.CREATED:
            self._refused += 1
            return
        self._orders.append(PlacedOrder(answer.json()["order"]["order_id"], began_s, time.time()))


def _client(connections: int) -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=connections, max_keepalive_connections=connections)
    return httpx.AsyncClient(timeout=_TIMEOUT_S, limits=limits)
