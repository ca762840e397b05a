"""Checks that each refused order is closed in the ledger, and that only orders hit by a fault are refused or parked."""

from collections.abc import Collection, Iterator

from lab.simulation.judges.books import WorldBooks
from lab.simulation.judges.violation import Promise, Violation
from order_messages import credit_refused
from order_messages.states import BY_REFUSAL, EntryKind
from rocketmq_broker.message import properties


def refused_but_open(books: WorldBooks) -> Iterator[Violation]:
    """Yields a violation for each order that was reported as refused but is not closed in the ledger.

    An open order could be reversed without a credit, or credited after its cancellation.
    """
    closed = {entry["order_id"] for entry in books.tables.credits if entry["kind"] == EntryKind.CREDIT}
    told: dict[str, None] = {}
    for store in books.stores.values():
        for record in store.messages:
            if record.topic == credit_refused.TOPIC.encode():
                told |= dict.fromkeys((properties.find(record.properties, properties.KEYS) or "").split())
    for order_id in told:
        if order_id not in closed:
            text = "the order service was told that the order is refused, and the ledger has no credit that closes it"
            yield Violation(Promise.REFUSED_IS_CLOSED, text, (order_id,))


def innocent_but_refused(books: WorldBooks, failing: Collection[str]) -> Iterator[Violation]:
    """Yields a violation for each order that was refused or parked although no fault has hit this order.

    `failing` are the orders that a fault has hit.
    """
    refused = {entry["order_id"] for entry in books.tables.credits if entry["message_id"].startswith(BY_REFUSAL)}
    for order_id in sorted((refused | books.parked.get("credit_service", frozenset())) - set(failing)):
        what = "refused" if order_id in refused else "parked"
        yield Violation(Promise.INNOCENT_IS_KEPT, f"the order was {what}, and no fault has hit it", (order_id,))
