"""Checks that all orders, messages and transactions are settled at the end of a simulation, long after its faults."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from credit_service.domain.credit import points_for
from lab.simulation.judges.books import CONSUMED, BrokerStore, WorldBooks, keys_of
from lab.simulation.judges.broker_lists import BrokerLists
from lab.simulation.judges.delivered_once import doubled_messages
from lab.simulation.judges.refused_orders import refused_but_open
from lab.simulation.judges.shipping import shipping_violations
from lab.simulation.judges.violation import OrderVerdict, Promise, Violation
from order_messages.states import EntryKind, OrderState
from pipelines.judging.without_spark.in_sqlite import Row
from rocketmq_broker.databases.inbox import InboxStatus
from rocketmq_broker.message import properties, topics
from rocketmq_commitlog.commit_log import LogRecord

CREDIT_GROUP = "credit_service"


@dataclass(frozen=True, slots=True)
class LivenessReport:
    """The result of the checks at the end of a simulation: the violations, and a verdict on each order."""

    violations: tuple[Violation, ...]
    verdicts: Mapping[str, OrderVerdict]
    """Maps order ids to the verdicts on the orders' entries."""


def judge_end(
    books: WorldBooks,
    lists: BrokerLists,
    told: Mapping[str, str],
    groups: Collection[str],
    *,
    has_inventory: bool = True,
) -> LivenessReport:
    """Checks the end of a simulation.

    `lists` are the brokers' lists for operators. `told` maps the ids of confirmed orders to their customers.
    `groups` are the consumer groups of the simulation.
    """
    violations = [*_pending(lists), *_unlisted(books, lists), *doubled_messages(books.stores.values())]
    for store in books.stores.values():
        violations += _unconsumed(store, groups)
    violations += [*_forgotten(books, told), *refused_but_open(books), *_unprocessed(books)]
    verdicts: dict[str, OrderVerdict] = {}
    named = lists.names_of(CREDIT_GROUP) | books.parked.get(CREDIT_GROUP, frozenset())
    for order_id, account in _accounts(books).items():
        verdicts[order_id] = account.verdict(order_id in named)
        if verdicts[order_id] is OrderVerdict.BROKEN:
            promise = Promise.ORDER_HAS_CREDIT if account.order else Promise.CREDIT_HAS_ORDER
            violations.append(Violation(promise, account.text, (order_id,)))
    overdue = "the order still awaits its payment, and its deadline has passed"
    violations += [
        Violation(Promise.NOTHING_PENDING, overdue, (order["order_id"],))
        for order in books.tables.orders
        if order["state"] == OrderState.AWAITING_PAYMENT and order["order_id"] not in named
    ]
    if has_inventory:
        violations += shipping_violations(books, lists)
    return LivenessReport(tuple(violations), verdicts)


@dataclass(frozen=True, slots=True)
class _Account:
    """An order with its entries and the kinds of entries that its state requires."""

    order: Row | None
    wanted: tuple[EntryKind, ...]
    entries: tuple[Row, ...]

    def verdict(self, is_named: bool) -> OrderVerdict:
        """Returns the verdict. `is_named` is True if the order is on a list for operators."""
        if self.order is not None and self._is_right():
            return OrderVerdict.SETTLED
        lacks = set(self.wanted) - {entry["kind"] for entry in self.entries}
        return OrderVerdict.WAITS_FOR_A_PERSON if lacks and is_named else OrderVerdict.BROKEN

    @property
    def text(self) -> str:
        """A description of the order and its entries, for a violation."""
        found = ", ".join(f"{entry['kind']} of {entry['points']} points for {entry['customer']}" for entry in self.entries)
        if self.order is None:
            return f"no order has this id, and the ledger has: {found}"
        demanded = " and ".join(self.wanted) or "no entry"
        order = f"the order of {self.order['customer']} over {self.order['total_cents']} cents is {self.order['state']}"
        return f"{order}, which demands {demanded}; the ledger has: {found or 'nothing'}"

    def _is_right(self) -> bool:
        assert self.order is not None
        if sorted(entry["kind"] for entry in self.entries) != sorted(self.wanted):
            return False
        if any(entry["customer"] != self.order["customer"] for entry in self.entries):
            return False
        if EntryKind.REVERSAL in self.wanted:
            return not sum(int(entry["points"]) for entry in self.entries)
        cents = self.order["total_cents"]
        return all((entry["amount_cents"], entry["points"]) == (cents, points_for(cents)) for entry in self.entries)


def _accounts(books: WorldBooks) -> dict[str, _Account]:
    entries: dict[str, list[Row]] = defaultdict(list)
    for entry in books.tables.credits:
        entries[entry["order_id"]].append(entry)
    announced = books.announced
    orders = {order["order_id"]: order for order in books.tables.orders}
    return {
        order_id: _Account(
            orders.get(order_id),
            _wanted(orders[order_id]["state"], order_id in announced) if order_id in orders else (),
            tuple(entries.get(order_id, ())),
        )
        for order_id in dict.fromkeys((*orders, *entries))
    }


def _wanted(state: str, is_announced: bool) -> tuple[EntryKind, ...]:
    """Returns the entries that the state of an order requires.

    Only an order whose message was committed can be cancelled in the ledger.
    """
    if OrderState(state).is_published:
        return (EntryKind.CREDIT,)
    if state == OrderState.CANCELLED and is_announced:
        return (EntryKind.CREDIT, EntryKind.REVERSAL)
    return ()


def _pending(lists: BrokerLists) -> Iterator[Violation]:
    for one in lists.pending:
        text = f"the half message to {one.topic} still waits for its decision, after {one.checks} check-backs"
        yield Violation(Promise.NOTHING_PENDING, text, (one.transaction_id, *one.keys))


def _unlisted(books: WorldBooks, lists: BrokerLists) -> Iterator[Violation]:
    """Yields a violation for each dead letter and discarded message that is missing from the brokers' lists."""
    listed = {message.message_id for message in (*lists.dead_letters, *lists.discarded)}
    for store in books.stores.values():
        for record in store.messages:
            topic = record.topic.decode(errors="replace")
            if not topic.startswith(topics.DEAD_LETTER_PREFIX) and topic != topics.CHECK_MAX_TIME_TOPIC:
                continue
            unique_key = properties.find(record.properties, properties.UNIQUE_KEY)
            if unique_key not in listed:
                text = f"a message of {topic} waits for a person, and no list names it"
                yield Violation(Promise.LISTED_FOR_A_PERSON, text, _keys(record))


def _unconsumed(store: BrokerStore, groups: Collection[str]) -> Iterator[Violation]:
    for group in groups:
        for topic in CONSUMED[group]:
            offsets = store.offsets[group][topic]
            for record in store.messages:
                if record.topic == topic.encode() and record.queue_offset >= offsets.get(record.queue_id, 0):
                    text = f"{group} has not acknowledged the message {record.queue_offset} of {topic}, queue {record.queue_id}"
                    yield Violation(Promise.NOTHING_PENDING, text, _keys(record))


def _unprocessed(books: WorldBooks) -> Iterator[Violation]:
    """Yields a violation for each message that still waits in an inbox or an outbox and is not parked for operators."""
    for row in books.inboxes:
        if row["status"] != InboxStatus.PARKED:
            why = f" after {row['attempts']} failures: {row['last_error']}" if row["last_error"] else ""
            text = f"a message of {row['topic']} is {row['status']} in the inbox of {row['consumer']}{why}"
            yield Violation(Promise.NOTHING_PENDING, text, keys_of(row))


def _forgotten(books: WorldBooks, told: Mapping[str, str]) -> Iterator[Violation]:
    found = {order["order_id"]: order["customer"] for order in books.tables.orders}
    for order_id, customer in told.items():
        if found.get(order_id) != customer:
            there = "is nowhere" if order_id not in found else f"belongs to {found[order_id]}"
            text = f"{customer} was told that the order is placed, and it {there}"
            yield Violation(Promise.TOLD_ORDER_IS_KEPT, text, (order_id,))


def _keys(record: LogRecord) -> tuple[str, ...]:
    unique_key = properties.find(record.properties, properties.UNIQUE_KEY)
    names = (properties.find(record.properties, properties.KEYS) or "").split()
    return tuple(key for key in (unique_key, *names) if key)
