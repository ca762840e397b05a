"""The start screen of `make up`: what runs, an order by a form, recent transactions, and the scenarios."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import httpx
from sqlalchemy import Row

from demo.errors import DemoError
from demo.scenarios.ledger import Ledgers
from demo.scenarios.plays import SCENARIOS
from demo.scenarios.runs import Runs
from demo.scenarios.scenario import Scenario, ScenarioRun
from demo.system import System
from demo.up.keeper import Health, Keeper
from rocketmq_broker.admin.console import SearchHit, Visit, url
from rocketmq_broker.admin.errors import CannotAsk, Refused

GRPC: Final = "clients of RocketMQ 5 (gRPC)"
"""The name of the address for them."""
MOST_ROWS: Final = 10
_REQUEST_S: Final = 20.0


class RecentTransaction(NamedTuple):
    """A transaction of the order service, with its order if it has one."""

    transaction_id: str
    at_ms: int
    state: str
    order_id: str | None
    customer: str | None
    total_cents: int | None


class StartFacts(NamedTuple):
    """The content of the start screen."""

    healths: Mapping[str, Health]
    links: Mapping[str, str]
    """By name: the pages of the services."""
    metrics: Mapping[str, str]
    """By name: where metrics are served, if they are."""
    grpc: str | None
    """The broker's address for clients of RocketMQ 5, if it serves them."""
    rows: list[RecentTransaction]
    trouble: str | None
    """Why the recent transactions cannot be shown."""
    scenarios: tuple[Scenario, ...]
    running: ScenarioRun | None
    states: Sequence[str]
    """Those that transactions have at present."""
    most: int = MOST_ROWS

    @property
    def is_ready(self) -> bool:
        """True if all processes do their work."""
        return all(health is Health.READY for health in self.healths.values())


class Shop:
    """Finds the facts of the start screen, and places its orders."""

    def __init__(
        self,
        system: System,
        keeper: Keeper,
        runs: Runs,
        addresses: Mapping[str, str],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """`addresses` are those of `make up`, by name. `transport` replaces the network."""
        self._order_url = system.order_url
        self._transport = transport
        self._keeper = keeper
        self._runs = runs
        self._metrics = {name: address for name, address in addresses.items() if name.startswith("metrics")}
        self._grpc = addresses.get(GRPC)
        self._links = {
            name: address for name, address in addresses.items() if address.startswith("http") and name not in self._metrics
        }

    async def find(self, visit: Visit) -> StartFacts:
        """Returns the state of all processes, and the recent transactions that the filter lets through."""
        rows: list[RecentTransaction] = []
        states: list[str] = []
        trouble: str | None = None
        try:
            found, states = await asyncio.to_thread(
                self._recent, self._runs.ledgers, visit.word("customer"), visit.word("order"), visit.word("state")
            )
            rows = [RecentTransaction(**row._asdict()) for row in found]
        except DemoError as error:
            trouble = str(error) if self._keeper.is_all_ready else None  # a young database has no tables yet
        return StartFacts(
            self._keeper.healths, self._links, self._metrics, self._grpc, rows, trouble, SCENARIOS, self._runs.running, states
        )

    async def place(self, visit: Visit) -> str:
        """Places the order of the form. Raises Refused with the order service's reason, CannotAsk if it does not answer."""
        item = {"name": visit.word("article"), "quantity": _number(visit, "quantity"), "price_cents": _cents(visit.word("price"))}
        body = {"customer": visit.word("customer"), "items": [item], "payment": visit.word("payment") or "now"}
        try:
            async with httpx.AsyncClient(timeout=_REQUEST_S, transport=self._transport, trust_env=False) as client:
                response = await client.post(f"{self._order_url}/orders", json=body)
        except httpx.TransportError as error:
            raise CannotAsk(f"the order service does not answer: {error or type(error).__name__}") from None
        answer = _object(response)
        if "order" not in answer:
            raise Refused(f"the order service answers {response.status_code}: {_reason(answer)}")
        order = answer["order"]
        return f"order {order['order_id']} of {body['customer']} is {order['state']}"

    def after_order(self, visit: Visit) -> str:
        """Returns the start screen with the transactions of the order's customer."""
        return url("/", customer=visit.word("customer"))

    async def search(self, word: str) -> list[SearchHit]:
        """Returns the newest transactions of customers with the word in their name, and of orders whose id begins with it."""
        try:
            found = await asyncio.to_thread(self._like, self._runs.ledgers, word)
        except DemoError:
            return []
        return [_hit(RecentTransaction(**row._asdict())) for row in found]

    @staticmethod
    def _like(ledgers: Ledgers, word: str) -> list[Row[Any]]:
        of_customer = ledgers.recent_transactions(customer=word, order="", state="", most=MOST_ROWS)
        of_order = ledgers.recent_transactions(customer="", order=word, state="", most=MOST_ROWS)
        return [*of_customer, *(row for row in of_order if row not in of_customer)]

    @staticmethod
    def _recent(ledgers: Ledgers, customer: str, order: str, state: str) -> tuple[Sequence[Row[Any]], list[str]]:
        rows = ledgers.recent_transactions(customer=customer, order=order, state=state, most=MOST_ROWS)
        return rows, ledgers.transaction_states()


def _hit(row: RecentTransaction) -> SearchHit:
    why = "the marker of a rollback, without an order"
    if row.order_id is not None and row.total_cents is not None:
        why = f"{row.customer}: order {row.order_id}, {row.total_cents / 100:.2f}, {row.state}"
    return SearchHit("transaction", row.transaction_id, url("/transaction", word=row.transaction_id), row.at_ms, why)


def _number(visit: Visit, name: str) -> int:
    number = visit.number(name, 0)
    if number < 1:
        raise Refused(f"the {name} is a whole number from 1")
    return number


def _cents(price: str) -> int:
    """Parses a price such as `12.99` exactly. Raises Refused."""
    whole, _, part = price.replace(",", ".").partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) <= 12 and len(part) <= 2 and (part + "0").isdigit()):
        raise Refused("the price is a number with at most two digits behind the point, such as 12.99")
    return int(whole) * 100 + int(part.ljust(2, "0"))


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {"detail": response.text[:200]}
    return body if isinstance(body, dict) else {}


def _reason(answer: Mapping[str, Any]) -> str:
    return str(answer.get("detail") or answer.get("title") or "no reason given")[:300]
