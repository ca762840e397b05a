"""Creates inconsistent databases and commit logs with one fault per order, and the expected findings.

The services' and broker's own code creates the data. Then faults are injected like those of accidents: rows that are lost,
changed or added, wrong decisions, and flipped bytes.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from order_messages.states import BY_REPAIR
from pipelines.judging.classes import Cause, Finding
from pipelines.judging.totals import SUMMED
from pipelines.repair.audit import Audit
from pipelines.repair.plan import Action, RepairStep
from rocketmq_broker.message import properties
from tests.component.pipelines.conftest import ShopDatabases
from tests.unit.pipelines.log_writer import LogWriter, order_body

AT_MS = 1_000_000
AS_OF_MS = 2_000_000
GRACE_SECONDS = 100
OVERDUE_SECONDS = 500
LATE_MS = AS_OF_MS - 200_000
"""Older than the grace period, and not overdue."""

Told = tuple[Finding, Cause | None]


@dataclass
class BrokenBooks:
    """Inconsistent databases and logs. Each method creates one order with one fault, and `expected` lists the findings."""

    shop: ShopDatabases
    log: LogWriter
    expected: dict[str, Told] = field(default_factory=dict)
    healthy: int = 0
    at_ms: int = AT_MS
    """When what happens happens, unless a story says otherwise."""
    placed_ms: dict[str, int] = field(default_factory=dict)
    audited: list[tuple[str, Action, str]] = field(default_factory=list)
    """The steps that the audit of repairs names: id, action and order."""

    def add(self, name: str, number: int, at_ms: int = AT_MS) -> str:
        """Creates an order with the fault that the story `name` describes. Returns the order id."""
        order_id, self.at_ms = f"{name[:30]} {number}".replace(" ", "-"), at_ms
        told = STORIES[name](self, order_id)
        if told[0] in SUMMED:
            self.healthy += 1
        else:
            self.expected[order_id] = told
        return order_id

    def place(self, o: str, at_ms: int | None = None, *, currency: str = "EUR") -> None:
        self.placed_ms[o] = at_ms or self.at_ms
        self.shop.add_orders([o], at_ms=self.placed_ms[o], customer=f"customer of {o}", currency=currency)

    def credit(self, o: str, at_ms: int | None = None, **more: Any) -> None:
        self.shop.add_credits([o], at_ms=at_ms or self.at_ms, **{"customer": f"customer of {o}", **more})

    def body(self, o: str, **said: object) -> bytes:
        more = {"version": 2, "items": [{"name": "book", "quantity": quantity} for quantity in (2, 1)]}
        return order_body(o, self.placed_ms.get(o, self.at_ms), **{"customer": f"customer of {o}", **more, **said})

    def half(self, o: str, at_ms: int | None = None, *, decided: bool = True) -> None:
        self.log.half(o, at=at_ms or self.at_ms, body=self.body(o))
        if decided:
            self.log.decide_latest()

    def deliver(self, o: str, at_ms: int | None = None, *, born: int = 1, key: str | None = None, **said: object) -> int:
        return self.log.deliver(key or o, at=at_ms or self.at_ms, unique_key=f"U-{o}", body=self.body(o, **said), born=born)

    def announce(self, o: str, **more: Any) -> int:
        self.half(o)
        return self.deliver(o, **more)

    def health(self, o: str, **said: Any) -> int:
        """Creates a healthy order. Returns the commit log offset of its message."""
        self.place(o)
        offset = self.announce(o, **said)
        self.credit(o)
        return offset

    def reverse(
        self, o: str, sign: int = -1, *, message_id: str = "repair 1", transaction_id: str | None = None, is_audited: bool = True
    ) -> None:
        """Reverses the order's credit, as a repair or a message does, and updates the customer's balance."""
        if message_id.startswith(BY_REPAIR) and is_audited:
            self.audited.append((message_id.removeprefix(BY_REPAIR), Action.REVERSE, o))
        self.shop.credits.execute(
            "INSERT INTO credits (order_id, kind, customer, points, amount_cents, message_id, transaction_id, created_at_ms)"
            f" SELECT order_id, 'reversal', customer, {sign} * points, amount_cents, ?, ?, created_at_ms FROM credits"
            " WHERE order_id = ?",
            (message_id, transaction_id, o),
        )
        self.in_credits(f"UPDATE balances SET points = points + {sign} * points WHERE customer = 'customer of ' || ?", o)

    def cancel(self, o: str, at_ms: int | None = None, *, decided: bool = True, **told: Any) -> None:
        """Cancels an order and sends the message of the cancellation. `told` is passed to `tell_cancellation`."""
        at_ms = at_ms or self.at_ms
        self.in_orders(f"UPDATE orders SET state = 'CANCELLED', ended_at_ms = {at_ms} WHERE order_id = ?", o)
        self.in_orders(f"INSERT INTO transactions VALUES ('C-' || ?1, ?1, 'COMMITTED', {at_ms}, 'cancellation')", o)
        self.tell_cancellation(o, at_ms, decided=decided, **told)

    def tell_cancellation(
        self, o: str, at_ms: int | None = None, *, half: bool = True, decided: bool = True, key: str | None = None, born: int = 1,
        unique_key: str | None = None, change: Callable[[bytes], bytes] | None = None, **said: object,
    ) -> None:  # fmt: skip
        """Writes the message of a cancellation, and its half message. `change` and `said` modify the body."""
        at_ms = at_ms or self.at_ms
        body = order_body(
            o, **{"customer": f"customer of {o}", "version": 1, "cancelled_at_ms": at_ms, "reason": "as asked", **said}
        )
        named: Any = {"topic": "order_cancellations", "unique_key": unique_key or f"C-{o}", "born": born}
        named |= {"body": body if change is None else change(body), "at": at_ms}
        lies = self.log.half(key or o, **named) if half else 0
        if half and decided:
            self.log.decide_latest()
        if decided:
            self.log.deliver(key or o, half=lies, **named)

    def take_back(self, o: str) -> None:
        """Writes the reversal that the cancellation's message requires."""
        self.reverse(o, message_id=f"C-{o}", transaction_id=f"C-{o}")

    def store(self, o: str, status: str = "NEW", at_ms: int | None = None, *, copy: int = 1, kind: str = "orders") -> None:
        """Stores a message of the order, its cancellation or its refusal in the credit service's inbox. `kind` is the topic."""
        said = {
            "credit_refusals": {"reason": "no"},
            "order_cancellations": {"cancelled_at_ms": at_ms or self.at_ms, "reason": "no"},
        }
        consumer = "credit_service.refusals" if kind == "credit_refusals" else "credit_service"
        reason = None if status == "NEW" else f"OperationalError: {o} fails"
        more = {"consumer": consumer, "topic": kind, "last_error": reason, "properties": f'{{"UNIQ_KEY":"U-{o}"}}'}
        self.shop.store(
            f"{kind} {o} {copy}", self.body(o, **said.get(kind, {})), status=status, at_ms=at_ms or self.at_ms, **more
        )

    def publish(self, o: str, step: str | None = "2") -> None:
        """Publishes a plain message of the order, as the repair `step` does. If `step` is None, no audit contains the step."""
        self.log.append("orders", o, f"U-{o}", self.at_ms, body=self.body(o))
        if step is not None:
            self.audited.append((step, Action.PUBLISH, o))

    def write_audit(self, path: Path) -> None:
        """Writes the audit file as `repair --apply` does."""
        audit = Audit(path)
        for step, action, o in self.audited:
            audit.begin(RepairStep(step, action, o, "missing_credit", []))

    def in_orders(self, statement: str, o: str) -> None:
        self.shop.orders.execute(statement, (o,))
        self.shop.orders.commit()

    def in_credits(self, statement: str, o: str) -> None:
        self.shop.credits.execute(statement, (o,))
        self.shop.credits.commit()


Story = Callable[[BrokenBooks, str], Told]
STORIES: dict[str, Story] = {}


def story(tell: Story) -> Story:
    STORIES[tell.__name__.replace("_", " ")] = tell
    return tell


@story
def healthy(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    return Finding.MATCHED, None


@story
def sent_twice_after_a_time_out(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.announce(o, born=2)
    return Finding.MATCHED, None


@story
def discarded_and_resumed(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.half(o, books.at_ms, decided=False)
    books.log.discard(o, at=books.at_ms + 1)
    books.half(o, books.at_ms + 2)
    books.deliver(o, books.at_ms + 3)
    books.credit(o)
    return Finding.MATCHED, None


@story
def credited_after_two_retries_and_a_dead_letter(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    for at, write in enumerate(
        (books.log.delay, books.log.retry, books.log.delay, books.log.retry, books.log.bury, books.log.retry)
    ):
        write(o, at=books.at_ms + at)
    return Finding.MATCHED, None


@story
def rolled_back(books: BrokenBooks, o: str) -> Told:
    books.half(o)
    books.in_orders("INSERT INTO transactions VALUES ('U-' || ?, NULL, 'ROLLED_BACK', 1, 'order')", o)
    return Finding.ROLLED_BACK, None


@story
def young(books: BrokenBooks, o: str) -> Told:
    books.place(o, AS_OF_MS)
    return Finding.IN_FLIGHT, Cause.YOUNG


@story
def pending(books: BrokenBooks, o: str) -> Told:
    books.place(o, LATE_MS)
    books.half(o, LATE_MS, decided=False)
    return Finding.IN_FLIGHT, Cause.PENDING


@story
def pending_and_moved_forward(books: BrokenBooks, o: str) -> Told:
    books.place(o, LATE_MS)
    books.half(o, LATE_MS - 1)
    books.half(o, LATE_MS, decided=False)
    return Finding.IN_FLIGHT, Cause.PENDING


@story
def overdue(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.half(o, decided=False)
    return Finding.OVERDUE, Cause.PENDING


@story
def waiting_for_redelivery(books: BrokenBooks, o: str) -> Told:
    books.at_ms = LATE_MS
    books.place(o)
    books.announce(o)
    books.log.delay(o, at=LATE_MS)
    return Finding.IN_FLIGHT, Cause.REDELIVERING


@story
def credit_lost(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.announce(o)
    return Finding.MISSING_CREDIT, Cause.CONSUMED


@story
def dead_letter(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.announce(o)
    books.log.bury(o, at=books.at_ms)
    return Finding.MISSING_CREDIT, Cause.DEAD_LETTER


@story
def discarded(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.half(o, decided=False)
    books.log.discard(o, at=books.at_ms + 1)
    return Finding.MISSING_CREDIT, Cause.DISCARDED


@story
def commit_taken_for_rollback(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.half(o)
    return Finding.MISSING_CREDIT, Cause.ROLLED_BACK


@story
def never_announced(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    return Finding.MISSING_CREDIT, Cause.NO_MESSAGE


@story
def order_row_lost(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.in_orders("DELETE FROM orders WHERE order_id = ?", o)
    return Finding.CREDIT_WITHOUT_ORDER, Cause.ORDER_LOST


@story
def credit_of_a_rollback(books: BrokenBooks, o: str) -> Told:
    rolled_back(books, o)
    books.credit(o)
    return Finding.CREDIT_WITHOUT_ORDER, Cause.ROLLED_BACK


@story
def credit_invented(books: BrokenBooks, o: str) -> Told:
    books.credit(o)
    return Finding.CREDIT_WITHOUT_ORDER, Cause.NO_MESSAGE


@story
def credit_invented_and_reversed(books: BrokenBooks, o: str) -> Told:
    books.credit(o)
    books.reverse(o)
    return Finding.REVERSED, None


@story
def cancelled(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.cancel(o)
    books.take_back(o)
    return Finding.REVERSED, None


@story
def cancelled_and_on_its_way(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.cancel(o, LATE_MS, decided=False)
    return Finding.IN_FLIGHT, Cause.CANCELLING


@story
def cancelled_and_not_reversed(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.cancel(o)
    return Finding.MISSING_REVERSAL, Cause.CONSUMED


@story
def awaiting_its_payment(books: BrokenBooks, o: str) -> Told:
    books.place(o, LATE_MS)
    books.half(o, LATE_MS, decided=False)
    books.in_orders(f"UPDATE orders SET state = 'AWAITING_PAYMENT', pay_until_ms = {AS_OF_MS} WHERE order_id = ?", o)
    books.in_orders("UPDATE transactions SET state = 'PENDING' WHERE order_id = ?", o)
    return Finding.IN_FLIGHT, Cause.PENDING


@story
def expired(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.half(o)
    until = f"pay_until_ms = {books.at_ms + 5}, ended_at_ms = {books.at_ms + 9}"
    books.in_orders(f"UPDATE orders SET state = 'EXPIRED', {until} WHERE order_id = ?", o)
    books.in_orders("UPDATE transactions SET state = 'ROLLED_BACK' WHERE order_id = ?", o)
    return Finding.ENDED, None


@story
def credit_of_an_order_that_stands_reversed(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.reverse(o)
    return Finding.REVERSED_ORDER, None


@story
def reversed_with_the_wrong_sign(books: BrokenBooks, o: str) -> Told:
    books.credit(o)
    books.reverse(o, sign=1)
    return Finding.REVERSAL_MISMATCH, None


@story
def message_of_a_rollback(books: BrokenBooks, o: str) -> Told:
    rolled_back(books, o)
    books.deliver(o)
    return Finding.MESSAGE_WITHOUT_ORDER, Cause.ROLLED_BACK


@story
def message_invented(books: BrokenBooks, o: str) -> Told:
    books.announce(o)
    return Finding.MESSAGE_WITHOUT_ORDER, Cause.NO_TRANSACTION


@story
def order_row_lost_unannounced(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.in_orders("DELETE FROM orders WHERE order_id = ?", o)
    return Finding.TRANSACTION_WITHOUT_ORDER, Cause.ORDER_LOST


@story
def credited_twice(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.credit(o)
    return Finding.DOUBLE_CREDIT, Cause.ONE_MESSAGE


@story
def another_amount(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.in_credits("UPDATE credits SET amount_cents = 1251 WHERE order_id = ?", o)
    return Finding.AMOUNT_MISMATCH, Cause.LEDGER


@story
def order_raised(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.in_orders("UPDATE orders SET total_cents = 9900 WHERE order_id = ?", o)
    return Finding.AMOUNT_MISMATCH, Cause.ORDER_OR_MESSAGE


@story
def absurd_amount(books: BrokenBooks, o: str) -> Told:
    """Raises the amount of a credit to the maximum integer, which must not overflow in sums."""
    books.health(o)
    books.in_credits(f"UPDATE credits SET amount_cents = {2**63 - 1} WHERE order_id = ?", o)
    return Finding.AMOUNT_MISMATCH, Cause.LEDGER


@story
def points_rounded_up(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.in_credits("UPDATE credits SET points = 13 WHERE order_id = ?", o)
    books.in_credits("UPDATE balances SET points = 13 WHERE customer = 'customer of ' || ?", o)
    return Finding.POINTS_MISMATCH, Cause.LEDGER


@story
def wrong_customer(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.announce(o)
    books.credit(o, customer="somebody else")
    return Finding.WRONG_CUSTOMER, Cause.LEDGER


@story
def somebody_elses_transaction(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.in_credits("UPDATE credits SET transaction_id = 'U-other' WHERE order_id = ?", o)
    return Finding.WRONG_TRANSACTION, Cause.LEDGER


@story
def two_order_rows(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.in_orders(
        "INSERT INTO orders (order_id, customer, total_cents, currency, created_at_ms, state)"
        " SELECT order_id, customer, 1, 'EUR', 1, state FROM orders WHERE order_id = ?",
        o,
    )
    return Finding.DUPLICATE_ORDER, None


@story
def marker_for_an_order_that_stands(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.in_orders("UPDATE transactions SET state = 'ROLLED_BACK', order_id = NULL WHERE order_id = ?", o)
    return Finding.ROLLED_BACK_ORDER, Cause.MARKER


@story
def transaction_row_lost(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.in_orders("DELETE FROM transactions WHERE order_id = ?", o)
    return Finding.ORDER_WITHOUT_TRANSACTION, None


@story
def item_changed(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.in_orders("UPDATE order_items SET quantity = quantity + 1 WHERE order_id = ?", o)
    return Finding.ITEMS_MISMATCH, None


@story
def currency_changed(books: BrokenBooks, o: str) -> Told:
    books.place(o, currency="USD")
    books.announce(o)
    books.credit(o)
    return Finding.CURRENCY_MISMATCH, None


@story
def amount_in_the_body(books: BrokenBooks, o: str) -> Told:
    books.health(o, total_cents=1251)
    return Finding.MESSAGE_MISMATCH, Cause.AMOUNT


@story
def key_of_another(books: BrokenBooks, o: str) -> Told:
    books.health(o, key="another-order")
    return Finding.MESSAGE_MISMATCH, Cause.NAME


@story
def delivered_twice(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.deliver(o)
    return Finding.DOUBLED_DELIVERY, None


@story
def credited_without_a_message(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.credit(o)
    return Finding.ORDER_WITHOUT_MESSAGE, Cause.NO_MESSAGE


@story
def byte_flipped_in_the_body(books: BrokenBooks, o: str) -> Told:
    books.log.flip(books.health(o), b"total_cents")
    return Finding.DAMAGED_MESSAGE, Cause.DAMAGE


@story
def byte_flipped_in_the_head(books: BrokenBooks, o: str) -> Told:
    books.log.flip(books.health(o), b"\xda\xa3\x20\xa7")
    return Finding.DAMAGED_MESSAGE, Cause.DAMAGE


@story
def byte_flipped_in_the_topic(books: BrokenBooks, o: str) -> Told:
    books.log.flip(books.health(o), b"orders", behind=b"\x06")
    return Finding.DAMAGED_MESSAGE, Cause.DAMAGE


@story
def byte_flipped_in_the_key(books: BrokenBooks, o: str) -> Told:
    books.log.flip(books.health(o), o.encode(), behind=f"{properties.KEYS}\x01".encode())
    return Finding.MESSAGE_MISMATCH, Cause.NAME


@story
def byte_flipped_in_the_transaction_id(books: BrokenBooks, o: str) -> Told:
    books.log.flip(books.health(o), f"U-{o}".encode())
    return Finding.MESSAGE_MISMATCH, Cause.TRANSACTION


@story
def byte_flipped_and_not_credited(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.log.flip(books.announce(o), b"total_cents")
    return Finding.MISSING_CREDIT, Cause.DAMAGE


@story
def waiting_in_the_inbox(books: BrokenBooks, o: str) -> Told:
    books.at_ms = LATE_MS
    books.place(o)
    books.announce(o)
    books.store(o)
    return Finding.IN_FLIGHT, Cause.WAITING


@story
def failing_in_the_inbox(books: BrokenBooks, o: str) -> Told:
    books.at_ms = LATE_MS
    books.place(o)
    books.announce(o)
    books.store(o, "FAILED")
    return Finding.IN_FLIGHT, Cause.WAITING


@story
def overdue_in_the_inbox(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.announce(o)
    books.store(o, "FAILED")
    return Finding.OVERDUE, Cause.WAITING


@story
def parked(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.announce(o)
    books.store(o, "PARKED")
    return Finding.MISSING_CREDIT, Cause.PARKED


@story
def parked_and_retried(books: BrokenBooks, o: str) -> Told:
    books.at_ms = LATE_MS
    books.place(o)
    books.announce(o)
    books.store(o, "PARKED")
    books.store(o, copy=2)
    return Finding.IN_FLIGHT, Cause.WAITING


@story
def dismissed(books: BrokenBooks, o: str) -> Told:
    books.place(o)
    books.announce(o)
    books.store(o, "DISMISSED")
    return Finding.MISSING_CREDIT, Cause.DISMISSED


@story
def redelivered_beside_its_credit(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.store(o, at_ms=AS_OF_MS)
    books.store(o, at_ms=AS_OF_MS - 1, copy=2)
    return Finding.MATCHED, None


@story
def left_in_the_inbox_beside_its_credit(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.store(o, at_ms=LATE_MS)
    return Finding.IN_FLIGHT, Cause.WAITING


@story
def left_in_the_inbox_for_long(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.store(o, "FAILED")
    return Finding.OVERDUE, Cause.WAITING


@story
def parked_beside_its_credit(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.store(o, "PARKED")
    return Finding.MESSAGE_MISMATCH, Cause.PARKED


@story
def copy_dismissed(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.store(o, "DISMISSED")
    return Finding.MATCHED, None


@story
def cancellation_waiting_in_the_inbox(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.cancel(o, LATE_MS)
    books.store(o, at_ms=LATE_MS, kind="order_cancellations")
    return Finding.IN_FLIGHT, Cause.WAITING


@story
def cancellation_parked(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.cancel(o)
    books.store(o, "PARKED", kind="order_cancellations")
    return Finding.MISSING_REVERSAL, Cause.PARKED


@story
def refused_and_not_reported_yet(books: BrokenBooks, o: str) -> Told:
    books.at_ms = LATE_MS
    books.place(o)
    books.announce(o)
    books.credit(o, amount_cents=0)
    books.reverse(o, message_id="refused U-" + o, transaction_id="U-" + o)
    books.in_credits("UPDATE credits SET message_id = 'refused U-' || order_id WHERE order_id = ?", o)
    books.store(o, kind="credit_refusals")
    return Finding.IN_FLIGHT, Cause.WAITING


@story
def stored_without_an_order(books: BrokenBooks, o: str) -> Told:
    books.store(o)
    return Finding.MESSAGE_WITHOUT_ORDER, Cause.NO_MESSAGE


@story
def stored_by_another_consumer(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.store(o, "PARKED")
    books.in_credits("UPDATE rocketmq_inbox SET consumer = 'inventory_service' WHERE message_key = 'orders ' || ? || ' 1'", o)
    return Finding.MATCHED, None


@story
def stored_in_an_unknown_status(books: BrokenBooks, o: str) -> Told:
    books.health(o)
    books.store(o, "LOST")
    return Finding.UNKNOWN_ROW, None
