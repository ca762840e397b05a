"""The screen of pending transactions. Shows the time to the next check-back, and the producers that can handle it."""

from typing import Final, NamedTuple

from rocketmq_broker.admin.broker_requests.figures import producers
from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.console.brokers import broker_at
from rocketmq_broker.admin.console.screen import Screen
from rocketmq_broker.admin.console.visit import Visit
from rocketmq_broker.admin.errors import NotSupported
from rocketmq_broker.admin.session import Session
from rocketmq_broker.admin.timeline.half_queue import UndecidedHalf, undecided_halves
from rocketmq_broker.protocol.bodies.group import ClientConnection
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo
from rocketmq_broker.protocol.headers.transaction_admin import ListPendingTransactionsRequestHeader

PAGE: Final = 100


class PendingRow(NamedTuple):
    """A pending transaction, and the online producers of its group."""

    broker: str
    info: TransactionInfo
    producers: list[ClientConnection]

    @property
    def is_last_check_over(self) -> bool:
        """True if the broker will discard the transaction instead of checking back again."""
        return self.info.check_max is not None and (self.info.checks or 0) >= self.info.check_max


class HalfRow(NamedTuple):
    """A half message of an Apache broker. Apache's brokers cannot list pending transactions."""

    broker: str
    half: UndecidedHalf
    producers: list[ClientConnection]


class NextPage(NamedTuple):
    """The next page of a broker's list."""

    broker: str
    after: int


class PendingFacts(NamedTuple):
    """The facts that the screen of pending transactions shows."""

    rows: list[PendingRow]
    halves: list[HalfRow]
    total: int
    next_pages: list[NextPage]
    of_apache: list[str]
    """The addresses of the Apache brokers."""
    unreadable: list[str]
    """The addresses of the Apache brokers that do not allow pulls of their half messages."""


async def find(visit: Visit) -> PendingFacts:
    """Returns the oldest pending transactions of each broker. Raises CannotAsk or Refused."""
    session, address = await visit.session(), visit.word("broker")
    if address:
        session = Session([broker_at(session, address)])
    after = visit.number("after", -1)
    facts = PendingFacts([], [], 0, [], [], [])
    for _, found in await session.ask_each(lambda broker: _of_broker(broker, after)):
        facts = _combined(facts, found)
    return facts


async def _of_broker(broker: BrokerRequests, after: int) -> PendingFacts:
    try:
        found = await broker.list_pending(ListPendingTransactionsRequestHeader(after=after, max_count=PAGE))
    except NotSupported:
        return await _of_apache_broker(broker)
    online = {group: await producers(broker, group) for group in {info.producer_group for info in found.transactions}}
    rows = [PendingRow(broker.address, info, online[info.producer_group]) for info in found.transactions]
    next_pages = [NextPage(broker.address, found.next_after)] if found.next_after is not None else []
    return PendingFacts(rows, [], found.total, next_pages, [], [])


async def _of_apache_broker(broker: BrokerRequests) -> PendingFacts:
    found = await undecided_halves(broker)
    online = {group: await producers(broker, group) for group in {half.producer_group for half in found.halves}}
    rows = [HalfRow(broker.address, half, online[half.producer_group]) for half in found.halves]
    return PendingFacts([], rows, len(rows), [], [broker.address], [] if found.is_readable else [broker.address])


def _combined(one: PendingFacts, other: PendingFacts) -> PendingFacts:
    return PendingFacts(
        one.rows + other.rows,
        one.halves + other.halves,
        one.total + other.total,
        one.next_pages + other.next_pages,
        one.of_apache + other.of_apache,
        one.unreadable + other.unreadable,
    )


SCREEN: Final = Screen("/pending", "Pending transactions", "pending.html", find)
