"""Creates inconsistent databases and commit logs with one fault per order, and the expected findings.

The services' and broker's own code creates the data. Then faults are injected like those of accidents: rows that are lost,
changed or added, wrong decisions, and flipped bytes.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from order_messages.states import BY_REPAIR
from pipelines.judging.classes import Cause, Finding
from pipelines.judging.cut_off import CutOff
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

CUT_OFF = CutOff(AS_OF_MS, GRACE_SECONDS, OVERDUE_SECONDS)

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
        story = STORIES[name]
        story.tell(self, order_id)
        if story.finding in SUMMED:
            self.healthy += 1
        else:
            self.expected[order_id] = story.finding, story.cause
        return order_id

    def add_each_twice(self) -> None:
        """Creates two orders for each story, in a random sequence. The credit service has consumed all messages."""
        names = [name for name in STORIES for _ in range(2)]
        random.Random(11).shuffle(names)
        for number, name in enumerate(names):
            self.add(name, number)
        self.log.consume()

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


Telling = Callable[[BrokenBooks, str], object]


@dataclass(frozen=True)
class Book:
    """One order: how it is created, and its expected class and cause."""

    tell: Telling
    finding: Finding
    cause: Cause | None = None


def books_by_name(table: Mapping[tuple[Finding, Cause | None], Mapping[str, Telling]]) -> dict[str, Book]:
    """Returns the books of a table, which groups them by what is found of them."""
    return {name: Book(tell, *found) for found, tellings in table.items() for name, tell in tellings.items()}


def steps(*tellings: Telling, at_ms: int | None = None) -> Telling:
    """Returns a function that calls the functions in turn, at this time, and returns what the last one returned."""

    def tell(books: BrokenBooks, o: str) -> object:
        books.at_ms = at_ms or books.at_ms
        return [step(books, o) for step in tellings][-1]

    return tell


def orders(statement: str) -> Telling:
    """Returns a function that executes a statement in the order database. `?` is the order id."""
    return lambda books, o: books.in_orders(statement, o)


def credits(statement: str) -> Telling:
    """Returns a function that executes a statement in the credit database."""
    return lambda books, o: books.in_credits(statement, o)


def changed(table: str, assignments: str, only: str = "TRUE") -> Telling:
    """Returns a function that changes the order's rows of a table, or only those that meet the condition `only`."""
    execute = credits if table == "credits" else orders
    return execute(f"UPDATE {table} SET {assignments} WHERE order_id = ? AND {only}")


def expired(books: BrokenBooks, o: str) -> None:
    until = f"pay_until_ms = {books.at_ms + 5}, ended_at_ms = {books.at_ms + 9}"
    announced_in_half(books, o)
    books.in_orders(f"UPDATE orders SET state = 'EXPIRED', {until} WHERE order_id = ?", o)
    books.in_orders("UPDATE transactions SET state = 'ROLLED_BACK' WHERE order_id = ?", o)


def discarded_and_resumed(books: BrokenBooks, o: str) -> None:
    discarded(books, o)
    books.half(o, books.at_ms + 2)
    books.deliver(o, books.at_ms + 3)
    books.credit(o)


def credited_after_two_retries_and_a_dead_letter(books: BrokenBooks, o: str) -> None:
    books.health(o)
    log = books.log
    for at, write in enumerate((log.delay, log.retry, log.delay, log.retry, log.bury, log.retry)):
        write(o, at=books.at_ms + at)


def refused_and_not_reported_yet(books: BrokenBooks, o: str) -> None:
    consumed(books, o)
    books.credit(o, amount_cents=0)
    books.reverse(o, message_id="refused U-" + o, transaction_id="U-" + o)
    books.in_credits("UPDATE credits SET message_id = 'refused U-' || order_id WHERE order_id = ?", o)
    books.store(o, kind="credit_refusals")


def flipped(letters: str | None = None, behind: bytes = b"", *, first: Telling = BrokenBooks.health) -> Telling:
    """Returns a function that flips a byte of the order's message: at the letters, in which `?` is the order id."""

    def tell(books: BrokenBooks, o: str) -> None:
        offset = first(books, o)
        assert isinstance(offset, int)
        books.log.flip(offset, b"\xda\xa3\x20\xa7" if letters is None else letters.replace("?", o).encode(), behind=behind)

    return tell


healthy: Telling = BrokenBooks.health
consumed = steps(BrokenBooks.place, BrokenBooks.announce)
announced_in_half = steps(BrokenBooks.place, BrokenBooks.half)
pending: Telling = steps(BrokenBooks.place, lambda books, o: books.half(o, decided=False))
discarded = steps(pending, lambda books, o: books.log.discard(o, at=books.at_ms + 1))
rolled_back = steps(BrokenBooks.half, orders("INSERT INTO transactions VALUES ('U-' || ?, NULL, 'ROLLED_BACK', 1, 'order')"))
order_deleted = orders("DELETE FROM orders WHERE order_id = ?")


def stored(status: str = "NEW", *, first: Telling = healthy, at_ms: int | None = None, **more: Any) -> Telling:
    """Returns a function that creates an order, and then stores a message of it in the inbox at this time."""
    return steps(first, lambda books, o: books.store(o, status, at_ms=at_ms, **more))


def cancelled(books: BrokenBooks, o: str) -> None:
    books.health(o)
    books.cancel(o)


STORIES = books_by_name(
    {
        (Finding.MATCHED, None): {
            "healthy": healthy,
            "sent twice after a time out": steps(healthy, lambda books, o: books.announce(o, born=2)),
            "discarded and resumed": discarded_and_resumed,
            "credited after two retries and a dead letter": credited_after_two_retries_and_a_dead_letter,
            "redelivered beside its credit": stored(at_ms=AS_OF_MS - 1, copy=2, first=stored(at_ms=AS_OF_MS)),
            "copy dismissed": stored("DISMISSED"),
            "stored by another consumer": steps(
                stored("PARKED"),
                credits("UPDATE rocketmq_inbox SET consumer = 'inventory_service' WHERE message_key = 'orders ' || ? || ' 1'"),
            ),
        },
        (Finding.ROLLED_BACK, None): {"rolled back": rolled_back},
        (Finding.ENDED, None): {"expired": expired},
        (Finding.REVERSED, None): {
            "credit invented and reversed": steps(BrokenBooks.credit, BrokenBooks.reverse),
            "cancelled": steps(cancelled, BrokenBooks.take_back),
        },
        (Finding.IN_FLIGHT, Cause.YOUNG): {"young": lambda books, o: books.place(o, AS_OF_MS)},
        (Finding.IN_FLIGHT, Cause.PENDING): {
            "pending": steps(pending, at_ms=LATE_MS),
            "pending and moved forward": steps(
                BrokenBooks.place,
                lambda books, o: books.half(o, LATE_MS - 1),
                lambda books, o: books.half(o, decided=False),
                at_ms=LATE_MS,
            ),
            "awaiting its payment": steps(
                pending,
                changed("orders", f"state = 'AWAITING_PAYMENT', pay_until_ms = {AS_OF_MS}"),
                changed("transactions", "state = 'PENDING'"),
                at_ms=LATE_MS,
            ),
        },
        (Finding.IN_FLIGHT, Cause.REDELIVERING): {
            "waiting for redelivery": steps(consumed, lambda books, o: books.log.delay(o, at=LATE_MS), at_ms=LATE_MS),
        },
        (Finding.IN_FLIGHT, Cause.CANCELLING): {
            "cancelled and on its way": steps(healthy, lambda books, o: books.cancel(o, LATE_MS, decided=False)),
        },
        (Finding.IN_FLIGHT, Cause.WAITING): {
            "waiting in the inbox": steps(stored(first=consumed), at_ms=LATE_MS),
            "failing in the inbox": steps(stored("FAILED", first=consumed), at_ms=LATE_MS),
            "parked and retried": steps(stored(copy=2, first=stored("PARKED", first=consumed)), at_ms=LATE_MS),
            "left in the inbox beside its credit": stored(at_ms=LATE_MS),
            "cancellation waiting in the inbox": stored(
                first=steps(healthy, lambda books, o: books.cancel(o, LATE_MS)), at_ms=LATE_MS, kind="order_cancellations"
            ),
            "refused and not reported yet": steps(refused_and_not_reported_yet, at_ms=LATE_MS),
        },
        (Finding.OVERDUE, Cause.PENDING): {"overdue": pending},
        (Finding.OVERDUE, Cause.WAITING): {
            "overdue in the inbox": stored("FAILED", first=consumed),
            "left in the inbox for long": stored("FAILED"),
        },
        (Finding.MISSING_CREDIT, Cause.CONSUMED): {"credit lost": consumed},
        (Finding.MISSING_CREDIT, Cause.DEAD_LETTER): {
            "dead letter": steps(consumed, lambda books, o: books.log.bury(o, at=books.at_ms)),
        },
        (Finding.MISSING_CREDIT, Cause.DISCARDED): {"discarded": discarded},
        (Finding.MISSING_CREDIT, Cause.ROLLED_BACK): {"commit taken for rollback": announced_in_half},
        (Finding.MISSING_CREDIT, Cause.NO_MESSAGE): {"never announced": BrokenBooks.place},
        (Finding.MISSING_CREDIT, Cause.DAMAGE): {
            "byte flipped and not credited": flipped("total_cents", first=consumed),
        },
        (Finding.MISSING_CREDIT, Cause.PARKED): {"parked": stored("PARKED", first=consumed)},
        (Finding.MISSING_CREDIT, Cause.DISMISSED): {"dismissed": stored("DISMISSED", first=consumed)},
        (Finding.MISSING_REVERSAL, Cause.CONSUMED): {"cancelled and not reversed": cancelled},
        (Finding.MISSING_REVERSAL, Cause.PARKED): {
            "cancellation parked": stored("PARKED", first=cancelled, kind="order_cancellations"),
        },
        (Finding.CREDIT_WITHOUT_ORDER, Cause.ORDER_LOST): {"order row lost": steps(healthy, order_deleted)},
        (Finding.CREDIT_WITHOUT_ORDER, Cause.ROLLED_BACK): {"credit of a rollback": steps(rolled_back, BrokenBooks.credit)},
        (Finding.CREDIT_WITHOUT_ORDER, Cause.NO_MESSAGE): {"credit invented": BrokenBooks.credit},
        (Finding.REVERSED_ORDER, None): {"credit of an order that stands reversed": steps(healthy, BrokenBooks.reverse)},
        (Finding.REVERSAL_MISMATCH, None): {
            "reversed with the wrong sign": steps(BrokenBooks.credit, lambda books, o: books.reverse(o, sign=1)),
        },
        (Finding.MESSAGE_WITHOUT_ORDER, Cause.ROLLED_BACK): {"message of a rollback": steps(rolled_back, BrokenBooks.deliver)},
        (Finding.MESSAGE_WITHOUT_ORDER, Cause.NO_TRANSACTION): {"message invented": BrokenBooks.announce},
        (Finding.MESSAGE_WITHOUT_ORDER, Cause.NO_MESSAGE): {"stored without an order": BrokenBooks.store},
        (Finding.TRANSACTION_WITHOUT_ORDER, Cause.ORDER_LOST): {
            "order row lost unannounced": steps(BrokenBooks.place, order_deleted),
        },
        (Finding.DOUBLE_CREDIT, Cause.ONE_MESSAGE): {"credited twice": steps(healthy, BrokenBooks.credit)},
        (Finding.AMOUNT_MISMATCH, Cause.LEDGER): {
            "another amount": steps(healthy, changed("credits", "amount_cents = 1251")),
            # The maximum integer must not overflow in sums.
            "absurd amount": steps(healthy, changed("credits", f"amount_cents = {2**63 - 1}")),
        },
        (Finding.AMOUNT_MISMATCH, Cause.ORDER_OR_MESSAGE): {
            "order raised": steps(healthy, changed("orders", "total_cents = 9900")),
        },
        (Finding.POINTS_MISMATCH, Cause.LEDGER): {
            "points rounded up": steps(
                healthy,
                changed("credits", "points = 13"),
                credits("UPDATE balances SET points = 13 WHERE customer = 'customer of ' || ?"),
            ),
        },
        (Finding.WRONG_CUSTOMER, Cause.LEDGER): {
            "wrong customer": steps(consumed, lambda books, o: books.credit(o, customer="somebody else")),
        },
        (Finding.WRONG_TRANSACTION, Cause.LEDGER): {
            "somebody elses transaction": steps(healthy, changed("credits", "transaction_id = 'U-other'")),
        },
        (Finding.DUPLICATE_ORDER, None): {
            "two order rows": steps(
                healthy,
                orders(
                    "INSERT INTO orders (order_id, customer, total_cents, currency, created_at_ms, state)"
                    " SELECT order_id, customer, 1, 'EUR', 1, state FROM orders WHERE order_id = ?"
                ),
            ),
        },
        (Finding.ROLLED_BACK_ORDER, Cause.MARKER): {
            "marker for an order that stands": steps(healthy, changed("transactions", "state = 'ROLLED_BACK', order_id = NULL")),
        },
        (Finding.ORDER_WITHOUT_TRANSACTION, None): {
            "transaction row lost": steps(healthy, orders("DELETE FROM transactions WHERE order_id = ?")),
        },
        (Finding.ITEMS_MISMATCH, None): {
            "item changed": steps(healthy, changed("order_items", "quantity = quantity + 1")),
        },
        (Finding.CURRENCY_MISMATCH, None): {
            "currency changed": steps(lambda books, o: books.place(o, currency="USD"), BrokenBooks.announce, BrokenBooks.credit),
        },
        (Finding.MESSAGE_MISMATCH, Cause.AMOUNT): {"amount in the body": lambda books, o: books.health(o, total_cents=1251)},
        (Finding.MESSAGE_MISMATCH, Cause.NAME): {
            "key of another": lambda books, o: books.health(o, key="another-order"),
            "byte flipped in the key": flipped("?", behind=f"{properties.KEYS}\x01".encode()),
        },
        (Finding.MESSAGE_MISMATCH, Cause.TRANSACTION): {"byte flipped in the transaction id": flipped("U-?")},
        (Finding.MESSAGE_MISMATCH, Cause.PARKED): {"parked beside its credit": stored("PARKED")},
        (Finding.DOUBLED_DELIVERY, None): {"delivered twice": steps(healthy, BrokenBooks.deliver)},
        (Finding.ORDER_WITHOUT_MESSAGE, Cause.NO_MESSAGE): {
            "credited without a message": steps(BrokenBooks.place, BrokenBooks.credit),
        },
        (Finding.DAMAGED_MESSAGE, Cause.DAMAGE): {
            "byte flipped in the body": flipped("total_cents"),
            "byte flipped in the head": flipped(),
            "byte flipped in the topic": flipped("orders", behind=b"\x06"),
        },
        (Finding.UNKNOWN_ROW, None): {"stored in an unknown status": stored("LOST")},
    }
)
