"""The start screen of `make up`, with processes, a form for orders, recent transactions, and scenarios."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any, Final, NamedTuple

import httpx

from demo.errors import DemoError
from demo.scenarios.context import PAYMENT_DEADLINE_S
from demo.scenarios.ledger import CreditEntry, Ledgers, LedgerTotals, RecentTransaction
from demo.scenarios.plays import SCENARIOS
from demo.scenarios.runs import Runs
from demo.scenarios.scenario import Scenario, ScenarioRun
from demo.system import System
from demo.up.chapters import Chapter, first_chapters
from demo.up.keeper import Health, Keeper
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.console import SearchHit, Visit, url
from rocketmq_broker.admin.errors import AdminError, CannotAsk, Refused
from rocketmq_broker.protocol.headers.transaction_admin import ShowTransactionRequestHeader

GRPC: Final = "clients of RocketMQ 5 (gRPC)"
"""The name of the gRPC address."""
MAX_ROWS: Final = 10
MAX_PAIRS: Final = 5
HALF: Final = "half message"
LOCAL: Final = "local transaction"
COMMIT: Final = "COMMIT"
DELIVERED: Final = "delivered"
CREDITED: Final = "credited"
_ROLLED_BACK: Final = "ROLLED_BACK"
_BROKER_S: Final = 1.0
"""The timeout in seconds for requests to the broker.

After a timeout, the rows of the databases are shown without the broker's states.
"""
_REQUEST_S: Final = 20.0


class StepProgress(Enum):
    """The state of a step of a transaction. The values are shown on the screen."""

    DONE = "done"
    OPEN = "not yet"
    FAILED = "no"
    UNKNOWN = "unknown"


class Step(NamedTuple):
    """A step between an order and its credit."""

    name: str
    state: StepProgress


class OrderAndCredit(NamedTuple):
    """A transaction's row in the order database, its entry in the credit database, and its steps."""

    row: RecentTransaction
    entry: CreditEntry | None
    steps: Sequence[Step]

    @property
    def is_given_up(self) -> bool:
        """True if the broker has discarded the message although the order database still expects its delivery."""
        return any(step.name == COMMIT and step.state is StepProgress.FAILED for step in self.steps)

    @property
    def after_ms(self) -> int | None:
        """The time in milliseconds from the order to its entry in the credit database. None if there is no entry."""
        return None if self.entry is None else max(0, self.entry.at_ms - self.row.at_ms)


class StartFacts(NamedTuple):
    """The content of the start screen."""

    healths: Mapping[str, Health]
    links: Mapping[str, str]
    """Maps the names of the services to their URLs."""
    metrics: Mapping[str, str]
    """Maps a name to the URL of its Prometheus metrics."""
    grpc: str | None
    """The broker's gRPC address. None if gRPC is disabled."""
    pairs: list[OrderAndCredit]
    totals: LedgerTotals | None
    """The totals of both databases; None if one of them cannot be read."""
    trouble: str | None
    """The reason why the recent transactions or their credits cannot be shown. None if they can be shown."""
    has_broker: bool
    """True if the broker answered."""
    chapters: Sequence[Chapter]
    scenarios: tuple[Scenario, ...]
    running: ScenarioRun | None
    states: Sequence[str]
    """The current states of transactions, as options of the filter."""
    most: int = MAX_PAIRS
    deadline_s: int = PAYMENT_DEADLINE_S

    @property
    def is_ready(self) -> bool:
        """True if all processes are ready."""
        return all(health is Health.READY for health in self.healths.values())


class Shop:
    """Collects the content of the start screen, and places the orders that are entered there."""

    def __init__(
        self,
        system: System,
        keeper: Keeper,
        runs: Runs,
        addresses: Mapping[str, str],
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        """Creates the screen. `addresses` are the addresses of `make up`, keyed by name. `transport` replaces the network."""
        self._order_url = system.order_url
        self._transport = transport
        self._keeper = keeper
        self._runs = runs
        self._chapters = first_chapters()
        self._metrics = {name: address for name, address in addresses.items() if name.startswith("metrics")}
        self._grpc = addresses.get(GRPC)
        self._links = {
            name: address for name, address in addresses.items() if address.startswith("http") and name not in self._metrics
        }

    async def find(self, visit: Visit) -> StartFacts:
        """Returns the states of all processes, and the recent transactions that match the filter."""
        ledgers, trouble = self._runs.ledgers, None
        rows: list[RecentTransaction] = []
        states: list[str] = []
        entries: Mapping[str, CreditEntry] | None = None
        totals: LedgerTotals | None = None
        try:
            rows, states = await asyncio.to_thread(
                self._recent, ledgers, visit.word("customer"), visit.word("order"), visit.word("state")
            )
            entries = await asyncio.to_thread(ledgers.entries_of, [row.transaction_id for row in rows])
            totals = await asyncio.to_thread(ledgers.totals)
        except DemoError as error:
            trouble = str(error) if self._keeper.is_all_ready else None  # a new database has no tables yet
        decided = await _decided(visit, [row.transaction_id for row in rows if row.transaction_id not in (entries or {})])
        pairs = [OrderAndCredit(row, (entries or {}).get(row.transaction_id), steps_of(row, entries, decided)) for row in rows]
        return StartFacts(
            self._keeper.healths,
            self._links,
            self._metrics,
            self._grpc,
            pairs,
            totals,
            trouble,
            decided is not None,
            self._chapters,
            SCENARIOS,
            self._runs.running,
            states,
        )

    async def place(self, visit: Visit) -> str:
        """Places the order that the form describes.

        Raises Refused with the order service's reason, or CannotAsk if the service does not respond.
        """
        item = {"name": visit.word("article"), "quantity": _number(visit, "quantity"), "price_cents": _cents(visit.word("price"))}
        body = {"customer": visit.word("customer"), "items": [item], "payment": visit.word("payment") or "now"}
        response = await self._asked("/orders", body)
        answer = _object(response)
        if "order" not in answer:
            raise Refused(f"no order was placed: the order service returned {response.status_code} ({_reason(answer)})")
        order = answer["order"]
        return f"order {order['order_id']} of {body['customer']} is {order['state']}"

    async def pay(self, visit: Visit) -> str:
        """Pays for the order whose id the form contains.

        Raises Refused with the order service's reason, or CannotAsk if the service does not respond.
        """
        order_id = visit.word("order")
        if re.fullmatch("[0-9A-Za-z-]{1,36}", order_id) is None:
            raise Refused("invalid order id")
        response = await self._asked(f"/orders/{order_id}/payment", {})
        if response.is_error:
            reason = _reason(_object(response))
            raise Refused(f"the order was not paid: the order service returned {response.status_code} ({reason})")
        return f"order {order_id} is paid: the next check-back finds the payment, and its answer is COMMIT"

    async def _asked(self, path: str, body: Mapping[str, object]) -> httpx.Response:
        """Returns the order service's response. Raises CannotAsk if the service does not respond."""
        try:
            async with httpx.AsyncClient(timeout=_REQUEST_S, transport=self._transport, trust_env=False) as client:
                return await client.post(f"{self._order_url}{path}", json=body)
        except httpx.TransportError as error:
            raise CannotAsk(f"the order service does not respond: {error or type(error).__name__}") from None

    def after_order(self, visit: Visit) -> str:
        """Returns the URL of the start screen, filtered by the customer of the order."""
        return url("/", customer=visit.word("customer") or None)

    async def search(self, word: str) -> list[SearchHit]:
        """Returns the newest transactions whose customer contains the word, or whose order id begins with the word."""
        try:
            found = await asyncio.to_thread(self._like, self._runs.ledgers, word)
        except DemoError:
            return []
        return [_hit(row) for row in found]

    @staticmethod
    def _like(ledgers: Ledgers, word: str) -> list[RecentTransaction]:
        of_customer = ledgers.recent_transactions(customer=word, order="", state="", most=MAX_ROWS)
        of_order = ledgers.recent_transactions(customer="", order=word, state="", most=MAX_ROWS)
        return [*of_customer, *(row for row in of_order if row not in of_customer)]

    @staticmethod
    def _recent(ledgers: Ledgers, customer: str, order: str, state: str) -> tuple[list[RecentTransaction], list[str]]:
        rows = ledgers.recent_transactions(customer=customer, order=order, state=state, most=MAX_PAIRS)
        return rows, ledgers.transaction_states()


def steps_of(
    row: RecentTransaction, entries: Mapping[str, CreditEntry] | None, decided: Mapping[str, str] | None
) -> tuple[Step, ...]:
    """Returns the steps of a transaction.

    `entries` are the entries of the credit database, and `decided` are the broker's states. Each is None if it could not be read.
    """
    done, still_open, failed, unknown = StepProgress.DONE, StepProgress.OPEN, StepProgress.FAILED, StepProgress.UNKNOWN
    if row.transaction_state == _ROLLED_BACK:
        state = (decided or {}).get(row.transaction_id)
        rollback = {None: unknown, "pending": still_open}.get(state, done)
        return (Step(HALF, done), Step(LOCAL, done if row.order_id else failed), Step("ROLLBACK", rollback))
    is_credited = entries is not None and row.transaction_id in entries
    if is_credited:
        return tuple(Step(name, done) for name in (HALF, LOCAL, COMMIT, DELIVERED, CREDITED))
    state = (decided or {}).get(row.transaction_id)
    commit = {None: unknown, "committed": done, "pending": still_open}.get(state, failed)
    credit = unknown if entries is None else failed if commit is failed else still_open
    return (Step(HALF, done), Step(LOCAL, done), Step(COMMIT, commit), Step(DELIVERED, credit), Step(CREDITED, credit))


async def _decided(visit: Visit, transaction_ids: Sequence[str]) -> Mapping[str, str] | None:
    """Returns the broker's known states of these transactions, or None if the broker does not respond."""
    found: dict[str, str] = {}
    try:
        async with asyncio.timeout(_BROKER_S):
            session = await visit.session()
            for transaction_id in transaction_ids:
                header = ShowTransactionRequestHeader(transaction_id=transaction_id)
                for _, answer in await session.ask_each(partial(BrokerRequests.show, header=header)):
                    for info in answer.transactions:
                        found[transaction_id] = info.state
    except (AdminError, TimeoutError):
        return None
    return found


def _hit(row: RecentTransaction) -> SearchHit:
    why = "a rolled back transaction without an order"
    if row.order_id is not None and row.total_cents is not None:
        why = f"{row.customer}: order {row.order_id}, {row.total_cents / 100:.2f}, {row.state}"
    return SearchHit("transaction", row.transaction_id, url("/transaction", word=row.transaction_id), row.at_ms, why)


def _number(visit: Visit, name: str) -> int:
    number = visit.number(name, 0)
    if number < 1:
        raise Refused(f"the {name} must be an integer of at least 1")
    return number


def _cents(price: str) -> int:
    """Parses a price such as `12.99` exactly. Raises Refused if the text is not a price."""
    whole, _, part = price.replace(",", ".").partition(".")
    if not (whole.isascii() and whole.isdigit() and len(whole) <= 12 and len(part) <= 2 and (part + "0").isdigit()):
        raise Refused("the price must be a number with at most two decimals, such as 12.99")
    return int(whole) * 100 + int(part.ljust(2, "0"))


def _object(response: httpx.Response) -> dict[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {"detail": response.text[:200]}
    return body if isinstance(body, dict) else {}


def _reason(answer: Mapping[str, Any]) -> str:
    return str(answer.get("detail") or answer.get("title") or "no reason given")[:300]
