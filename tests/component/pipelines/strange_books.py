"""Deliberately manipulated data that no accident produces, and unusual but correct data, with the expected findings."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from pipelines.judging.classes import Cause, Finding
from pipelines.judging.totals import SUMMED
from pipelines.reconciliation import Books
from pipelines.repair.audit import known_repairs
from pipelines.repair.plan import Action
from tests.component.pipelines.broken_books import (
    AS_OF_MS,
    AT_MS,
    CUT_OFF,
    GRACE_SECONDS,
    LATE_MS,
    Book,
    BrokenBooks,
    Telling,
    announced_in_half,
    books_by_name,
    changed,
    credits,
    healthy,
    order_deleted,
    orders,
    pending,
    steps,
)
from tests.component.pipelines.conftest import Judge, ShopDatabases
from tests.unit.pipelines.log_writer import LogWriter, order_body

YEAR_2100_MS: Final = 4_102_444_800_000
HOURS_MS: Final = 7_200_000


def order_set(assignments: str) -> Telling:
    """Returns a function that creates a healthy order, and then changes its row."""
    return steps(healthy, changed("orders", assignments))


def credit_set(assignments: str) -> Telling:
    """Returns a function that creates a healthy order, and then changes its credit."""
    return steps(healthy, changed("credits", assignments))


def transaction_row(name: str, state: str = "COMMITTED", kind: str = "order") -> Telling:
    """Returns a function that adds a transaction row of the order. The id begins with `name`."""
    return orders(f"INSERT INTO transactions VALUES ('{name}-' || ?1, ?1, '{state}', {AT_MS}, '{kind}')")


def cancellation_dated(at_ms: int) -> Telling:
    """Returns a function that changes the time of the cancellation's row."""
    return orders(f"UPDATE transactions SET created_at_ms = {at_ms} WHERE transaction_id = 'C-' || ?")


def saying(**said: Any) -> Telling:
    """Returns a function that creates an order that is healthy except for some fields of its message."""
    return lambda books, o: books.health(o, **said)


def body(change: Callable[[bytes], bytes]) -> Telling:
    """Returns a function that creates an order that is healthy except for the bytes of its message's body."""

    def deliver(books: BrokenBooks, o: str) -> None:
        books.log.deliver(o, at=books.at_ms, unique_key=f"U-{o}", body=change(books.body(o)))

    return steps(announced_in_half, deliver, BrokenBooks.credit)


def told_again(**said: Any) -> Telling:
    """Returns a function that creates a healthy order, and a second message of it."""
    return steps(healthy, lambda books, o: books.announce(o, born=2, **said))


def placed_at(at_ms: int, *, stored_at_ms: int | None = None, is_credited: bool = False) -> Telling:
    """Returns a function that creates an order with this date. Its message was consumed long ago, or stored at `stored_at_ms`."""
    return steps(
        lambda books, o: books.place(o, at_ms),
        BrokenBooks.half,
        lambda books, o: books.deliver(o, stored_at_ms),
        *([BrokenBooks.credit] if is_credited else ()),
    )


def cancelled(*then: Telling) -> Telling:
    """Returns a function that creates a cancelled and reversed order, and then executes the statements."""
    return steps(healthy, BrokenBooks.cancel, BrokenBooks.take_back, *then)


def unpaid(state: str, transaction: str, *more: str, is_credited: bool = False) -> Telling:
    """Returns a function that creates an order with a later payment and a decided half message."""
    return steps(
        announced_in_half,
        changed("orders", f"state = '{state}', {', '.join(more)}"),
        changed("transactions", f"state = '{transaction}'"),
        *([BrokenBooks.credit] if is_credited else ()),
    )


def paid(paid_at_ms: int, until_ms: int, *, delivered_at_ms: int | None = None) -> Telling:
    """Returns a function that creates an order that was paid later, with a message and a credit of that time."""
    return steps(
        BrokenBooks.place,
        lambda books, o: books.half(o, paid_at_ms),
        lambda books, o: books.deliver(o, delivered_at_ms or paid_at_ms),
        lambda books, o: books.credit(o, paid_at_ms),
        changed("orders", f"state = 'PAID', pay_until_ms = {until_ms}, paid_at_ms = {paid_at_ms}"),
    )


def cancellation_told_of_an_order_that_stands(books: BrokenBooks, o: str) -> None:
    books.health(o)
    books.log.deliver(o, at=AT_MS, topic="order_cancellations", unique_key=f"C-{o}", body=books.body(o))


pending_and_credited = steps(pending, BrokenBooks.credit)
pending_in_the_future = steps(BrokenBooks.place, lambda books, o: books.half(o, YEAR_2100_MS, decided=False))
reversed_without_being_announced = steps(
    order_set(f"state = 'CANCELLED', ended_at_ms = {AT_MS}"),
    transaction_row("C", kind="cancellation"),
    BrokenBooks.take_back,
)
nameless_commit = orders("INSERT INTO transactions VALUES (?, NULL, 'COMMITTED', 1, 'order')")
below_zero = steps(
    saying(total_cents=-1200),
    changed("orders", "total_cents = -1200"),
    changed("order_items", "price_cents = -400"),
    changed("credits", "amount_cents = -1200, points = -12"),
    credits("UPDATE balances SET points = -12 WHERE customer = 'customer of ' || ?"),
)
order_row_lost_while_it_awaits = steps(pending, changed("transactions", "state = 'PENDING'"), order_deleted)
cancelled_a_moment_ago_and_consumed_long_ago = steps(
    healthy,
    BrokenBooks.cancel,
    cancellation_dated(AS_OF_MS),
)


_TO_CENTS: Final = b'"total_cents": 1250'
_KEEPS: Final = f"ended_at_ms = {AT_MS}"
_DATED: Final = f"pay_until_ms = {AT_MS}"

OF_THE_ISSUE: Final[Mapping[str, Book]] = books_by_name(
    {
        (Finding.STATE_MISMATCH, Cause.CREDITED): {
            "CANCELLED, and its credit kept": order_set(f"state = 'CANCELLED', {_KEEPS}"),
            "EXPIRED, and its credit kept": order_set(f"state = 'EXPIRED', {_KEEPS}, {_DATED}"),
            "AWAITING_PAYMENT, and credited": order_set(f"state = 'AWAITING_PAYMENT', {_DATED}"),
        },
        (Finding.STATE_MISMATCH, Cause.STATE): {"a state that no service knows": order_set("state = 'SHIPPED'")},
        (Finding.STATE_MISMATCH, Cause.STANDS): {
            "cancelled and reversed, and PLACED again": cancelled(changed("orders", "state = 'PLACED', ended_at_ms = NULL"))
        },
        (Finding.MISSING_CREDIT, Cause.CONSUMED): {
            "dated 2100, and not credited": placed_at(YEAR_2100_MS),
            "two hours ahead, and not credited": placed_at(AS_OF_MS + HOURS_MS),
            "its message stored in 2100, and not credited": placed_at(AT_MS, stored_at_ms=YEAR_2100_MS),
        },
        (Finding.CREDIT_WITHOUT_ORDER, Cause.ORDER_LOST): {
            "order deleted, and its credit dated 2100": steps(credit_set(f"created_at_ms = {YEAR_2100_MS}"), order_deleted)
        },
        (Finding.MESSAGE_MISMATCH, Cause.BODY): {
            "a body that is no JSON": body(lambda _: b"order"),
            "a body without an amount": body(lambda said: said.replace(_TO_CENTS, b'"cents": 1250')),
            "a body with a float": saying(total_cents=1250.5),
            "a body with text for a number": saying(total_cents="1250"),
            "a body with more than a bigint": saying(total_cents=10**20),
            "a body of two objects": body(lambda said: said + said),
        },
        (Finding.WRONG_TRANSACTION, Cause.LEDGER): {"a credit without a transaction id": credit_set("transaction_id = NULL")},
        (Finding.MESSAGE_MISMATCH, Cause.AMOUNT): {"a second message with a larger amount": told_again(total_cents=10**9)},
        (Finding.ORDER_WITHOUT_MESSAGE, Cause.PENDING): {"half message pending, and credited": pending_and_credited},
        (Finding.DUPLICATE_TRANSACTION, None): {"a second COMMITTED row": steps(healthy, transaction_row("V"))},
        (Finding.UNKNOWN_ROW, None): {
            "an entry of an unknown kind": steps(
                healthy,
                credits(
                    "INSERT INTO credits (order_id, kind, customer, points, amount_cents, message_id, created_at_ms)"
                    " SELECT order_id, 'bonus', customer, 0, 0, '', created_at_ms FROM credits WHERE order_id = ?"
                ),
            ),
            "a transaction of an unknown kind": steps(healthy, transaction_row("V", kind="gift")),
        },
        (Finding.WRONG_TRANSACTION, Cause.OTHER_MESSAGE): {
            "a credit that names another order's message": credit_set("message_id = 'U-of-another'")
        },
        (Finding.REVERSAL_MISMATCH, Cause.UNASKED): {
            "a reversal that names another transaction": cancelled(
                changed("credits", "transaction_id = 'C-x'", "kind = 'reversal'")
            )
        },
        (Finding.REVERSAL_MISMATCH, Cause.NO_MESSAGE): {"a reversal that was never announced": reversed_without_being_announced},
        (Finding.ITEMS_MISMATCH, Cause.ITEMS): {
            "items renamed": steps(healthy, changed("order_items", "name = 'atlas'", "quantity = 2")),
            "items requantified, and the same sum": steps(
                healthy, changed("order_items", "quantity = 1, price_cents = 1250", "quantity = 2")
            ),
        },
        (Finding.WRONG_TIME, Cause.TOO_EARLY): {
            "credited hours before it was placed": credit_set(f"created_at_ms = {AT_MS} - {HOURS_MS}")
        },
    }
)

OF_OURS: Final[Mapping[str, Book]] = books_by_name(
    {
        (Finding.STATE_MISMATCH, Cause.ROWS): {
            "PAID, and no time of payment": order_set(f"state = 'PAID', {_DATED}"),
            "PAID after its deadline": paid(AT_MS + 50, AT_MS + 49),
            "PLACED, and ended": order_set(_KEEPS),
            "PLACED, with a deadline for its payment": order_set(_DATED),
            "EXPIRED before its deadline": unpaid("EXPIRED", "ROLLED_BACK", f"pay_until_ms = {AT_MS + 10}", _KEEPS),
            "EXPIRED, and its transaction PENDING": unpaid("EXPIRED", "PENDING", _DATED, _KEEPS),
            "CANCELLED, and no time": cancelled(changed("orders", "ended_at_ms = NULL")),
        },
        (Finding.ROLLED_BACK_ORDER, Cause.MARKER): {
            "EXPIRED, rolled back and credited": unpaid("EXPIRED", "ROLLED_BACK", _DATED, _KEEPS, is_credited=True)
        },
        (Finding.STATE_MISMATCH, Cause.STATE): {
            "a state in small letters": order_set("state = 'placed'"),
            "an empty state": order_set("state = ''"),
        },
        (Finding.STATE_MISMATCH, Cause.STANDS): {
            "its cancellation told, and it stands": cancellation_told_of_an_order_that_stands
        },
        (Finding.DUPLICATE_TRANSACTION, None): {"cancelled twice": cancelled(transaction_row("D", kind="cancellation"))},
        (Finding.UNKNOWN_ROW, None): {
            "a transaction in an unknown state": steps(healthy, transaction_row("V", "DONE")),
            "a cancellation that was rolled back, by name": steps(healthy, transaction_row("V", "ROLLED_BACK", "cancellation")),
        },
        (Finding.TRANSACTION_WITHOUT_ORDER, Cause.ORDER_LOST): {
            "a COMMITTED row that names no order": nameless_commit,
            "PENDING, and its order row gone": order_row_lost_while_it_awaits,
            "cancelled and reversed, and its order row gone": cancelled(order_deleted),
        },
        (Finding.MESSAGE_MISMATCH, Cause.BODY): {
            "a body with null for a number": saying(total_cents=None),
            "a body in single quotes": body(lambda said: said.replace(b'"', b"'")),
            "a body in a list": body(lambda said: b"[" + said + b"]"),
            "a body with words behind it": body(lambda said: said + b" or 9"),
            "a body without a date": saying(created_at_ms=None),
            "an empty body": body(lambda _: b""),
            "a second message that nobody can read": told_again(total_cents="?"),
        },
        (Finding.MESSAGE_MISMATCH, Cause.AMOUNT): {
            "a second message with a smaller amount": told_again(total_cents=1),
            "an amount at the end of its range": saying(total_cents=-(2**63)),
        },
        (Finding.MESSAGE_MISMATCH, Cause.CUSTOMER): {"a second message for another customer": told_again(customer="zoe")},
        (Finding.CURRENCY_MISMATCH, None): {"a second message in another currency": told_again(currency="ZWL")},
        (Finding.ITEMS_MISMATCH, Cause.ITEMS): {
            "a second message with more items": told_again(items=[{"name": "book", "quantity": 2}] * 9),
            "an item that the message leaves out": saying(items=[{"name": "book", "quantity": 2}]),
            "a message of version 2 without items": saying(items=None),
            "quantities as text": saying(items=[{"name": "book", "quantity": "2"}, {"name": "book", "quantity": 1}]),
        },
        (Finding.MESSAGE_MISMATCH, Cause.TIME): {"an order that was dated back": order_set(f"created_at_ms = {AT_MS - 5}")},
        (Finding.WRONG_TIME, Cause.PAST): {"a date at the end of its range": order_set(f"created_at_ms = {-(2**63) + 1}")},
        (Finding.AMOUNT_MISMATCH, Cause.BELOW_ZERO): {"all below zero": below_zero},
        (Finding.WRONG_TIME, Cause.FUTURE): {
            "its transaction row dated 2100": steps(healthy, changed("transactions", f"created_at_ms = {YEAR_2100_MS}")),
            "its message stored in 2100, and credited": placed_at(AT_MS, stored_at_ms=YEAR_2100_MS, is_credited=True),
            "its credit dated 2100": credit_set(f"created_at_ms = {YEAR_2100_MS}"),
            "pending since 2100": pending_in_the_future,
        },
        (Finding.WRONG_TIME, Cause.TOO_EARLY): {
            "announced before it was paid": paid(AT_MS + 300_000, AT_MS + 300_000, delivered_at_ms=AT_MS)
        },
        (Finding.MISSING_CREDIT, Cause.CONSUMED): {"dated a moment ago, consumed long ago, not credited": placed_at(AS_OF_MS)},
        (Finding.MISSING_REVERSAL, Cause.CONSUMED): {
            "cancelled a moment ago, consumed long ago, not reversed": cancelled_a_moment_ago_and_consumed_long_ago
        },
        (Finding.REVERSAL_MISMATCH, Cause.UNASKED): {
            "a reversal that calls itself a refusal": cancelled(
                changed("credits", "message_id = 'refused x'", "kind = 'reversal'")
            )
        },
    }
)


def names_in_other_letters(books: BrokenBooks, o: str) -> None:
    name = "本 «Пир» 🎉"
    books.health(o, items=[{"name": name, "quantity": 2}, {"name": "book", "quantity": 1}])
    books.in_orders(f"UPDATE order_items SET name = '{name}' WHERE order_id = ? AND quantity = 2", o)


def for_an_amount(total_cents: int) -> Telling:
    return steps(
        lambda books, o: books.shop.add_orders([o], total_cents=total_cents, at_ms=AT_MS, customer=f"customer of {o}"),
        lambda books, o: books.announce(o, total_cents=total_cents),
        lambda books, o: books.credit(o, amount_cents=total_cents),
    )


def published_by_nothing(books: BrokenBooks, o: str) -> None:
    """Publishes a plain message of an order whose half message was rolled back. No repair step published the message."""
    announced_in_half(books, o)
    books.publish(o, step=None)
    books.credit(o)
    books.audited.append(("3", Action.RESUME, o))


def reversed_by(message_id: str, *, is_cancelled: bool = True, at_ms: int = AT_MS) -> Telling:
    """Returns a function that creates a reversal in the name of a repair. No line of the audit contains the repair."""
    return steps(
        *((healthy, BrokenBooks.cancel) if is_cancelled else (BrokenBooks.half, BrokenBooks.credit)),
        lambda books, o: books.reverse(o, message_id=message_id, is_audited=False),
        changed("credits", f"created_at_ms = {at_ms}", "kind = 'reversal'"),
    )


def reversed_by_the_step_of_another_order(books: BrokenBooks, o: str) -> None:
    reversed_by("repair 4")(books, o)
    books.audited += [("4", Action.REVERSE, f"another than {o}"), ("4", Action.PUBLISH, o), ("5", Action.REVERSE, o)]


def cancellation_outside_of_a_transaction(books: BrokenBooks, o: str) -> None:
    books.health(o)
    books.cancel(o, decided=False)
    books.log.decide_latest()
    said = {"customer": f"customer of {o}", "version": 1, "cancelled_at_ms": AT_MS, "reason": "as asked"}
    books.log.append("order_cancellations", o, f"C-{o}", AT_MS, body=order_body(o, **said))
    books.take_back(o)


def told_cancelled(**told: Any) -> Telling:
    """Returns a function that creates a reversed order whose only fault is its cancellation message, changed by `told`."""
    return steps(healthy, lambda books, o: books.cancel(o, **told), BrokenBooks.take_back)


def cancelled_and_told_again(**told: Any) -> Telling:
    """Returns a function that creates a cancelled and reversed order, and a second message of its cancellation."""
    return cancelled(lambda books, o: books.tell_cancellation(o, **told))


def expired_and(then: Telling) -> Telling:
    """Returns a function that creates an expired order, and then applies the fault `then`."""
    return steps(unpaid("EXPIRED", "ROLLED_BACK", _DATED, _KEEPS), then)


def not_consumed_yet(*then: Telling, **said: Any) -> Telling:
    """Returns a function that creates an order whose message was just delivered, and then executes the statements."""
    at_ms = AS_OF_MS - GRACE_SECONDS * 1000 - 9
    return steps(announced_in_half, lambda books, o: books.deliver(o, AS_OF_MS - 9, **said), *then, at_ms=at_ms)


def without_keys(statement: str) -> Telling:
    """Returns a function that creates an order, removes the primary key of the transactions, and executes a statement."""
    script = "CREATE TABLE copy AS SELECT * FROM transactions; DROP TABLE transactions; ALTER TABLE copy RENAME TO transactions;"
    return steps(
        cancelled() if "cancellation" in statement else healthy,
        lambda books, o: books.shop.orders.executescript(script),
        orders(statement),
    )


def all_in(currency: str) -> Telling:
    """Returns a function that creates an order whose order row and message have the same currency."""
    return steps(
        lambda books, o: books.place(o, currency=currency),
        lambda books, o: books.announce(o, currency=currency),
        BrokenBooks.credit,
    )


def all_of(customer: str) -> Telling:
    """Returns a function that creates an order whose order row, message and credit have the same customer."""
    return steps(
        saying(customer=customer),
        changed("orders", f"customer = '{customer}'"),
        credits("DELETE FROM balances WHERE customer = 'customer of ' || ?"),
        changed("credits", f"customer = '{customer}'"),
        credits(f"INSERT INTO balances SELECT '{customer}', 12 WHERE ? <> ''"),
    )


two_lines_in_another_order = saying(items=[{"name": "book", "quantity": 1}, {"name": "book", "quantity": 2}])
reversed_by_a_repair = steps(healthy, BrokenBooks.cancel, BrokenBooks.reverse)
refused_and_cancelled = steps(
    BrokenBooks.place,
    BrokenBooks.announce,
    lambda books, o: books.credit(o, amount_cents=0),
    changed("credits", "message_id = 'refused ' || message_id"),
    BrokenBooks.cancel,
    lambda books, o: books.reverse(o, message_id=f"refused U-{o}", transaction_id=f"U-{o}"),
)
second_half_message_pending = steps(healthy, lambda books, o: books.half(o, decided=False))
marker_of_a_cancellation = steps(
    healthy, orders(f"INSERT INTO transactions VALUES ('C-' || ?, NULL, 'ROLLED_BACK', {AT_MS}, 'cancellation')")
)
awaiting_for_days = steps(
    pending,
    changed("orders", f"state = 'AWAITING_PAYMENT', pay_until_ms = {AS_OF_MS + 10**9}"),
    changed("transactions", "state = 'PENDING'"),
)
a_day_ahead = steps(healthy, at_ms=AS_OF_MS + 24 * 3_600_000)
"""By a machine with a wrong clock."""
pending_an_hour_ahead = steps(
    lambda books, o: books.place(o, LATE_MS), lambda books, o: books.half(o, AS_OF_MS + HOURS_MS // 2, decided=False)
)
published_by_a_repair = steps(BrokenBooks.place, BrokenBooks.publish, BrokenBooks.credit)
"""A plain message of an order whose half message was lost."""
credited_and_reversed_by_a_repair = steps(
    BrokenBooks.half,
    BrokenBooks.credit,
    lambda books, o: books.reverse(o, message_id='repair it\'s \\x "6" ü'),  # characters that SQL and JSON escape
)
announced_without_half = steps(BrokenBooks.place, BrokenBooks.deliver, BrokenBooks.credit)
items_below_zero = steps(
    saying(items=[{"name": "book", "quantity": -2}, {"name": "book", "quantity": 1}]),
    changed("order_items", "quantity = -2, price_cents = -625", "quantity = 2"),
)
credit_below_zero_and_reversed = steps(lambda books, o: books.credit(o, amount_cents=-1200), BrokenBooks.reverse)
credit_of_other_points_and_reversed = steps(
    BrokenBooks.credit,
    changed("credits", "points = 99"),
    BrokenBooks.reverse,
    credits("UPDATE balances SET points = 0 WHERE customer = 'customer of ' || ?"),
)

_AGES_AGO: Final = AT_MS - HOURS_MS

CANCELLATION_FIELDS: Final[Mapping[str, tuple[object, Finding, Cause | None]]] = {
    "customer": ("zoe", Finding.MESSAGE_MISMATCH, Cause.CUSTOMER),
    "total_cents": (1251, Finding.MESSAGE_MISMATCH, Cause.AMOUNT),
    "currency": ("ZWL", Finding.CURRENCY_MISMATCH, None),
    "cancelled_at_ms": (AT_MS + 1, Finding.MESSAGE_MISMATCH, Cause.TIME),
}
"""Each field of a cancellation's message that another witness knows: another value, and what is found of it."""

OF_CANCELLATIONS: Final[Mapping[str, Book]] = {
    **{
        f"a cancellation that says another {field}": Book(told_cancelled(**{field: value}), finding, cause)
        for field, (value, finding, cause) in CANCELLATION_FIELDS.items()
    },
    **{
        f"a second message of its cancellation with another {field}": Book(
            cancelled_and_told_again(born=2, **{field: value}), finding, cause
        )
        for field, (value, finding, cause) in CANCELLATION_FIELDS.items()
    },
    **{
        f"a cancellation without {field}": Book(told_cancelled(**{field: None}), Finding.MESSAGE_MISMATCH, Cause.BODY)
        for field in ("customer", "total_cents", "currency", "cancelled_at_ms", "reason")
    },
    **books_by_name(
        {
            (Finding.MESSAGE_MISMATCH, Cause.BODY): {
                "a cancellation that is no JSON": told_cancelled(change=lambda _: b"cancelled"),
                "a cancellation of two objects": told_cancelled(change=lambda said: said + said),
                "a cancellation of version 0": told_cancelled(version=0),
            },
            (Finding.MESSAGE_MISMATCH, Cause.NAME): {"a cancellation with a key of another": told_cancelled(key="another-order")},
            (Finding.MESSAGE_MISMATCH, Cause.TRANSACTION): {
                "a cancellation by another transaction": told_cancelled(unique_key="C-x")
            },
            (Finding.MESSAGE_MISMATCH, Cause.NO_HALF): {"a cancellation without a half message": told_cancelled(half=False)},
            (Finding.DOUBLED_DELIVERY, None): {"a cancellation that was delivered twice": cancelled_and_told_again(half=False)},
            (Finding.STATE_MISMATCH, Cause.ROWS): {
                "a cancellation of an EXPIRED order": expired_and(BrokenBooks.tell_cancellation)
            },
            (Finding.MESSAGE_WITHOUT_ORDER, Cause.NO_TRANSACTION): {"a cancellation of nothing": BrokenBooks.tell_cancellation},
            (Finding.WRONG_TIME, Cause.TOO_EARLY): {
                "a cancellation that was told before it was written": cancelled(cancellation_dated(AT_MS + 200_000))
            },
        }
    ),
}

OF_VALUES: Final[Mapping[str, Book]] = books_by_name(
    {
        (Finding.MESSAGE_MISMATCH, Cause.NO_HALF): {"announced without a half message": announced_without_half},
        (Finding.MESSAGE_MISMATCH, Cause.BODY): {
            "a message of version 0": saying(version=0),
            "not consumed yet, and unreadable": not_consumed_yet(total_cents="?"),
        },
        (Finding.UNKNOWN_ROW, Cause.VALUE): {
            "a currency in small letters": all_in("eur"),
            "a currency of four letters": all_in("EURO"),
            "no currency": all_in(""),
            "a currency with a line break": all_in("EUR\n"),
            "a currency of other letters": all_in("\u0415UR"),
            "a customer without a name": all_of(""),
            "a customer with a name too long": all_of("c" * 101),
            "a quantity below zero, and the same sum": items_below_zero,
            "a credit below zero, and its reversal": credit_below_zero_and_reversed,
            "a credit of other points, and its reversal": credit_of_other_points_and_reversed,
            "EXPIRED, in no currency": expired_and(changed("orders", "currency = '€'")),
            "awaits its payment, in no currency": steps(awaiting_for_days, changed("orders", "currency = ''")),
        },
        (Finding.WRONG_TIME, Cause.TOO_EARLY): {
            "paid before it was placed": order_set(f"state = 'PAID', pay_until_ms = {AT_MS}, paid_at_ms = {_AGES_AGO}"),
            "to be paid before it was placed": unpaid("EXPIRED", "ROLLED_BACK", f"pay_until_ms = {_AGES_AGO}", _KEEPS),
            "cancelled before it was placed": unpaid("CANCELLED", "ROLLED_BACK", _DATED, f"ended_at_ms = {_AGES_AGO}"),
            "expired before it was placed": unpaid(
                "EXPIRED", "ROLLED_BACK", f"pay_until_ms = {_AGES_AGO}", f"ended_at_ms = {_AGES_AGO}"
            ),
            "told, and cancelled before it was placed": cancelled(
                cancellation_dated(_AGES_AGO),
            ),
            "its transaction older than itself": steps(healthy, changed("transactions", f"created_at_ms = {_AGES_AGO}")),
            "its reversal older than itself": cancelled(changed("credits", f"created_at_ms = {_AGES_AGO}", "kind = 'reversal'")),
        },
        (Finding.ITEMS_MISMATCH, None): {
            "EXPIRED, with other items": expired_and(changed("order_items", "price_cents = 1")),
            "EXPIRED, and its items gone": expired_and(orders("DELETE FROM order_items WHERE order_id = ?")),
            "awaits its payment, with other items": steps(awaiting_for_days, changed("order_items", "price_cents = 1")),
            "not consumed yet, and its total raised": not_consumed_yet(changed("orders", "total_cents = 9900")),
        },
        (Finding.AMOUNT_MISMATCH, Cause.BELOW_ZERO): {
            "EXPIRED, with a total below zero": expired_and(changed("orders", "total_cents = -1")),
            "awaits its payment, with a total below zero": steps(awaiting_for_days, changed("orders", "total_cents = -1250")),
        },
        (Finding.MESSAGE_MISMATCH, Cause.AMOUNT): {"not consumed yet, with another amount": not_consumed_yet(total_cents=9)},
        (Finding.MESSAGE_MISMATCH, Cause.CUSTOMER): {"not consumed yet, for another customer": not_consumed_yet(customer="zoe")},
        (Finding.CURRENCY_MISMATCH, None): {"not consumed yet, in another currency": not_consumed_yet(currency="ZWL")},
        (Finding.ITEMS_MISMATCH, Cause.ITEMS): {
            "not consumed yet, with other items": not_consumed_yet(items=[{"name": "atlas", "quantity": 1}])
        },
        (Finding.AMOUNT_MISMATCH, Cause.LEDGER): {
            "cancelled, and another amount": steps(
                credit_set("amount_cents = 9900, points = 99"), BrokenBooks.cancel, BrokenBooks.take_back
            )
        },
        (Finding.ROLLED_BACK_ORDER, Cause.MARKER): {
            "a marker beside its COMMITTED row": without_keys(
                "INSERT INTO transactions VALUES ('U-' || ?, NULL, 'ROLLED_BACK', 1, 'order')"
            ),
            "a ROLLED_BACK row beside its COMMITTED row": without_keys(
                f"INSERT INTO transactions VALUES ('U-' || ?1, ?1, 'ROLLED_BACK', {AT_MS}, 'order')"
            ),
            "a marker beside its cancellation": without_keys(
                "INSERT INTO transactions VALUES ('C-' || ?, NULL, 'ROLLED_BACK', 1, 'cancellation')"
            ),
        },
    }
)

OF_REPAIRS: Final[Mapping[str, Book]] = books_by_name(
    {
        (Finding.REVERSAL_MISMATCH, Cause.UNAUDITED): {
            "cancelled, and reversed by a repair that no audit names": reversed_by("repair 7"),
            "credited without an order, and reversed by a repair that no audit names": reversed_by(
                "repair 8", is_cancelled=False
            ),
            "reversed by a repair of another order": reversed_by_the_step_of_another_order,
            "reversed by a repair without a name": reversed_by("repair "),
        },
        (Finding.MESSAGE_MISMATCH, Cause.UNAUDITED): {
            "published by no repair that an audit names": published_by_nothing,
            "its cancellation sent outside of a transaction": cancellation_outside_of_a_transaction,
        },
    }
)


RIGHT: Final[Mapping[str, Book]] = books_by_name(
    {
        (Finding.MATCHED, None): {
            "two lines of one article, in another order": two_lines_in_another_order,
            "names in other letters": names_in_other_letters,
            "announced in version 1, without items": body(
                lambda said: json.dumps({**_without(json.loads(said), "items", "version")}).encode()
            ),
            "announced in version 3, with more fields": saying(version=3, coupon=["x"]),
            "a body with blanks and its fields turned round": body(
                lambda said: json.dumps(dict(reversed(json.loads(said).items())), indent=4).encode()
            ),
            "sent twice after a time-out": told_again(),
            "delivered, and a second half message pending": second_half_message_pending,
            "clocks that differ by 90 s": credit_set(f"created_at_ms = {AT_MS - 90_000}"),
            "for nothing": for_an_amount(0),
            "for ten billion units": for_an_amount(10**15),
            "paid long after it was placed": paid(AT_MS + 600_000, AT_MS + 600_000),
            "the marker of a cancellation": marker_of_a_cancellation,
            "placed and credited a day ahead": a_day_ahead,
            "its credit an hour ahead": credit_set(f"created_at_ms = {AS_OF_MS + HOURS_MS}"),
            "published again by a repair": published_by_a_repair,
            "a customer with the longest name": all_of("ß" * 100),
            "in yen": all_in("JPY"),
        },
        (Finding.REVERSED, None): {
            "cancelled": cancelled(),
            "cancelled, and reversed by a repair": reversed_by_a_repair,
            "cancelled, and reversed before it was credited": cancelled(
                changed("credits", f"created_at_ms = {AT_MS + 9}", "kind = 'credit'")
            ),
            "refused by the credit service": refused_and_cancelled,
            "cancelled, and told twice after a time-out": cancelled_and_told_again(born=2),
            "cancelled, by a message of version 2 with more fields": told_cancelled(version=2, shop=4),
            "cancelled by a clock that is 90 s behind": cancelled(cancellation_dated(AT_MS - 90_000)),
            "credited without an order, and reversed by a repair": credited_and_reversed_by_a_repair,
        },
        (Finding.IN_FLIGHT, Cause.PENDING): {
            "pending since an hour ahead": pending_an_hour_ahead,
            "awaits its payment for days, as agreed": awaiting_for_days,
        },
        (Finding.IN_FLIGHT, Cause.YOUNG): {
            "reversed by a repair a moment ago, after the audit was read": reversed_by("repair 9", at_ms=AS_OF_MS - 1),
            "delivered, and not consumed yet": not_consumed_yet(),
            "placed a minute ahead of our clock": lambda books, o: books.place(o, AS_OF_MS + 60_000),
        },
        (Finding.ENDED, None): {
            "expired": unpaid("EXPIRED", "ROLLED_BACK", _DATED, _KEEPS),
            "cancelled before it was paid": unpaid("CANCELLED", "ROLLED_BACK", f"pay_until_ms = {AT_MS + 9}", _KEEPS),
        },
    }
)

WRONG: Final[Mapping[str, Book]] = {**OF_THE_ISSUE, **OF_OURS, **OF_CANCELLATIONS, **OF_VALUES, **OF_REPAIRS}
ALL: Final[Mapping[str, Book]] = {**WRONG, **RIGHT}
PARTS: Final = (OF_THE_ISSUE, OF_OURS, OF_CANCELLATIONS, OF_VALUES, OF_REPAIRS, RIGHT)

Told = tuple[str, str | None]


def _without(said: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name not in names}


IDS: Final = {name: f"order-{number}" for number, name in enumerate(ALL)}


def written(folder: Path, and_more: Callable[[BrokenBooks], None] | None = None) -> Books:
    """Writes all cases to the databases and the log of one shop. `and_more` may add further orders."""
    shop = ShopDatabases(folder)
    books = BrokenBooks(shop, LogWriter(folder / "store", segment_size=1 << 20))
    for name, strange in ALL.items():
        books.at_ms = AT_MS
        strange.tell(books, IDS[name])
    if and_more is not None:
        and_more(books)
    books.log.consume()
    shop.close()
    books.write_audit(folder / "audit.jsonl")
    return replace(shop.books(books.log.store), read_repairs=partial(known_repairs, [folder / "audit.jsonl"]))


def judged(judge: Judge, folder: Path) -> dict[str, Told | None]:
    """Judges all cases in one run, and returns the finding for each case, by name.

    The finding is None for cases that are summed with the healthy orders.
    """
    outcome = judge(written(folder), CUT_OFF, str(folder / "out"))
    found = {row["order_id"] or row["transaction_id"] or row["customer"]: (row["finding"], row["cause"]) for row in outcome.rows}
    healthy = sum(row["count"] for row in outcome.rows if row["finding"] in SUMMED)
    told = {name: found.pop(order_id, None) for name, order_id in IDS.items()}
    found.pop(None, None)  # the sums
    assert not found, f"findings that no book asked for: {found}"
    assert healthy == sum(value is None for value in told.values())
    return told
