"""Checks that the ledger has closed each order that the credit service has reported as refused."""

from __future__ import annotations

from collections.abc import Iterator

from lab.simulation.judges.books import WorldBooks
from lab.simulation.judges.violation import Promise, Violation
from order_messages import credit_refused
from order_messages.states import EntryKind
from rocketmq_broker.message import properties
from rocketmq_commitlog.commit_log import LogRecord


def refused_but_open(books: WorldBooks) -> Iterator[Violation]:
    """Yields a violation for each order that was reported as refused but is not closed in the ledger.

    Such an order could be reversed without a credit, or credited after its cancellation.
    """
    closed = {entry["order_id"] for entry in books.tables.credits if entry["kind"] == EntryKind.CREDIT}
    told: dict[str, None] = {}
    for store in books.stores.values():
        for record in store.records:
            if isinstance(record, LogRecord) and record.topic == credit_refused.TOPIC.encode():
                told |= dict.fromkeys((properties.find(record.properties, properties.KEYS) or "").split())
    for order_id in told:
        if order_id not in closed:
            text = "the order service was told that the order is refused, and the ledger has no credit that closes it"
            yield Violation(Promise.REFUSED_IS_CLOSED, text, (order_id,))
