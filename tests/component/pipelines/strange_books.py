"""Deliberately manipulated data that no accident produces, and unusual but correct data, with the expected findings.

`python -m tests.component.pipelines.strange_books` judges all cases in one run and prints a table.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pipelines.embedded import reconcile_embedded
from pipelines.judging.classes import CONSISTENT, Cause, Finding
from pipelines.judging.cut_off import CutOff
from pipelines.judging.totals import SUMMED
from pipelines.reconciliation import Books
from pipelines.repair.audit import known_repairs
from pipelines.repair.plan import Action
from pipelines.sources.databases.database_url import parse_database_url
from tests.component.pipelines.broken_books import AS_OF_MS, AT_MS, GRACE_SECONDS, LATE_MS, OVERDUE_SECONDS, BrokenBooks
from tests.component.pipelines.conftest import Judge, ShopDatabases
from tests.unit.pipelines.log_writer import LogWriter, order_body

YEAR_2100_MS: Final = 4_102_444_800_000
HOURS_MS: Final = 7_200_000
Telling = Callable[[BrokenBooks, str], None]


@dataclass(frozen=True)
class StrangeBook:
    """One order with one unusual property, and its expected class and cause."""

    tell: Telling
    finding: Finding
    cause: Cause | None = None


def in_orders(statement: str) -> Telling:
    """Returns a function that creates a healthy order, and then executes a statement. `?` is the order id."""

    def tell(books: BrokenBooks, o: str) -> None:
        books.health(o)
        books.in_orders(statement, o)

    return tell


def in_credits(statement: str) -> Telling:
    """Returns a function that creates a healthy order, and then executes a statement in the credit database."""

    def tell(books: BrokenBooks, o: str) -> None:
        books.health(o)
        books.in_credits(statement, o)

    return tell


def order_set(assignments: str) -> Telling:
    return in_orders(f"UPDATE orders SET {assignments} WHERE order_id = ?")


def credit_set(assignments: str) -> Telling:
    return in_credits(f"UPDATE credits SET {assignments} WHERE order_id = ?")


def saying(**said: object) -> Telling:
    """Returns a function that creates an order that is healthy except for some fields of its message."""

    def tell(books: BrokenBooks, o: str) -> None:
        books.health(o, **said)

    return tell


def body(change: Callable[[bytes], bytes]) -> Telling:
    """Returns a function that creates an order that is healthy except for the bytes of its message's body."""

    def tell(books: BrokenBooks, o: str) -> None:
        books.place(o)
        books.half(o)
        books.log.deliver(o, at=books.at_ms, unique_key=f"U-{o}", body=change(books.body(o)))
        books.credit(o)

    return tell


def told_again(**said: object) -> Telling:
    """Returns a function that creates a healthy order, and a second message of it."""

    def tell(books: BrokenBooks, o: str) -> None:
        books.health(o)
        books.announce(o, born=2, **said)

    return tell


def placed_at(at_ms: int, *, stored_at_ms: int | None = None, is_credited: bool = False) -> Telling:
    """Returns a function that creates an order with this date.

    The order's message was delivered and consumed long ago, or is stored at `stored_at_ms`.
    """

    def tell(books: BrokenBooks, o: str) -> None:
        books.place(o, at_ms)
        books.half(o)
        books.deliver(o, stored_at_ms)
        if is_credited:
            books.credit(o)

    return tell


def cancelled(*then: str, is_decided: bool = True, is_reversed: bool = True) -> Telling:
    """Returns a function that creates a cancelled and reversed order, and then executes the statements.

    A statement that begins with C is executed in the credit database, others in the order database.
    """

    def tell(books: BrokenBooks, o: str) -> None:
        books.health(o)
        books.cancel(o, decided=is_decided)
        if is_reversed:
            books.take_back(o)
        for statement in then:
            place, _, rest = statement.partition(": ")
            (books.in_credits if place == "credits" else books.in_orders)(rest, o)

    return tell


def unpaid(state: str, transaction: str, *more: str, is_credited: bool = False) -> Telling:
    """Returns a function that creates an order with a later payment and a decided half message."""

    def tell(books: BrokenBooks, o: str) -> None:
        books.place(o)
        books.half(o)
        books.in_orders(f"UPDATE orders SET state = '{state}', {', '.join(more)} WHERE order_id = ?", o)
        books.in_orders(f"UPDATE transactions SET state = '{transaction}' WHERE order_id = ?", o)
        if is_credited:
            books.credit(o)

    return tell


def paid(paid_at_ms: int, until_ms: int, *, delivered_at_ms: int | None = None) -> Telling:
    """Returns a function that creates an order that was paid later, with a message and a credit of that time."""

    def tell(books: BrokenBooks, o: str) -> None:
        books.place(o)
        books.half(o, paid_at_ms)
        books.deliver(o, delivered_at_ms or paid_at_ms)
        books.credit(o, paid_at_ms)
        times = f"pay_until_ms = {until_ms}, paid_at_ms = {paid_at_ms}"
        books.in_orders(f"UPDATE orders SET state = 'PAID', {times} WHERE order_id = ?", o)

    return tell


def pending_and_credited(books: BrokenBooks, o: str) -> None:
    books.place(o)
    books.half(o, decided=False)
    books.credit(o)


def pending_in_the_future(books: BrokenBooks, o: str) -> None:
    books.place(o)
    books.half(o, YEAR_2100_MS, decided=False)


def reversed_without_being_announced(books: BrokenBooks, o: str) -> None:
    books.health(o)
    books.in_orders(f"UPDATE orders SET state = 'CANCELLED', ended_at_ms = {AT_MS} WHERE order_id = ?", o)
    books.in_orders(f"INSERT INTO transactions VALUES ('C-' || ?1, ?1, 'COMMITTED', {AT_MS}, 'cancellation')", o)
    books.take_back(o)


def cancellation_told_of_an_order_that_stands(books: BrokenBooks, o: str) -> None:
    books.health(o)
    books.log.deliver(o, at=AT_MS, topic="order_cancellations", unique_key=f"C-{o}", body=books.body(o))


def nameless_commit(books: BrokenBooks, o: str) -> None:
    books.in_orders("INSERT INTO transactions VALUES (?, NULL, 'COMMITTED', 1, 'order')", o)


def below_zero(books: BrokenBooks, o: str) -> None:
    books.health(o, total_cents=-1200)
    books.in_orders("UPDATE orders SET total_cents = -1200 WHERE order_id = ?", o)
    books.in_orders("UPDATE order_items SET price_cents = -400 WHERE order_id = ?", o)
    books.in_credits("UPDATE credits SET amount_cents = -1200, points = -12 WHERE order_id = ?", o)
    books.in_credits("UPDATE balances SET points = -12 WHERE customer = 'customer of ' || ?", o)


def order_row_lost_while_it_awaits(books: BrokenBooks, o: str) -> None:
    books.place(o)
    books.half(o, decided=False)
    books.in_orders("UPDATE transactions SET state = 'PENDING' WHERE order_id = ?", o)
    books.in_orders("DELETE FROM orders WHERE order_id = ?", o)


def cancelled_a_moment_ago_and_consumed_long_ago(books: BrokenBooks, o: str) -> None:
    books.health(o)
    books.cancel(o)
    books.in_orders(f"UPDATE transactions SET created_at_ms = {AS_OF_MS} WHERE transaction_id = 'C-' || ?", o)


_TO_CENTS: Final = b'"total_cents": 1250'
_RENAMED: Final = "UPDATE order_items SET name = 'atlas' WHERE order_id = ? AND quantity = 2"
_REQUANTIFIED: Final = "UPDATE order_items SET quantity = 1, price_cents = 1250 WHERE order_id = ? AND quantity = 2"
_KEEPS: Final = f"ended_at_ms = {AT_MS}"
_DATED: Final = f"pay_until_ms = {AT_MS}"

OF_THE_ISSUE: Final[Mapping[str, StrangeBook]] = {
    "CANCELLED, and its credit kept": StrangeBook(
        order_set(f"state = 'CANCELLED', {_KEEPS}"), Finding.STATE_MISMATCH, Cause.CREDITED
    ),
    "EXPIRED, and its credit kept": StrangeBook(
        order_set(f"state = 'EXPIRED', {_KEEPS}, {_DATED}"), Finding.STATE_MISMATCH, Cause.CREDITED
    ),
    "AWAITING_PAYMENT, and credited": StrangeBook(
        order_set(f"state = 'AWAITING_PAYMENT', {_DATED}"), Finding.STATE_MISMATCH, Cause.CREDITED
    ),
    "a state that no service knows": StrangeBook(order_set("state = 'SHIPPED'"), Finding.STATE_MISMATCH, Cause.STATE),
    "cancelled and reversed, and PLACED again": StrangeBook(
        cancelled("orders: UPDATE orders SET state = 'PLACED', ended_at_ms = NULL WHERE order_id = ?"),
        Finding.STATE_MISMATCH,
        Cause.STANDS,
    ),
    "dated 2100, and not credited": StrangeBook(placed_at(YEAR_2100_MS), Finding.MISSING_CREDIT, Cause.CONSUMED),
    "two hours ahead, and not credited": StrangeBook(placed_at(AS_OF_MS + HOURS_MS), Finding.MISSING_CREDIT, Cause.CONSUMED),
    "its message stored in 2100, and not credited": StrangeBook(
        placed_at(AT_MS, stored_at_ms=YEAR_2100_MS), Finding.MISSING_CREDIT, Cause.CONSUMED
    ),
    "order deleted, and its credit dated 2100": StrangeBook(
        lambda books, o: (
            credit_set(f"created_at_ms = {YEAR_2100_MS}")(books, o),
            books.in_orders("DELETE FROM orders WHERE order_id = ?", o),
        )[0],
        Finding.CREDIT_WITHOUT_ORDER,
        Cause.ORDER_LOST,
    ),
    "a body that is no JSON": StrangeBook(body(lambda _: b"order"), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a body without an amount": StrangeBook(
        body(lambda said: said.replace(_TO_CENTS, b'"cents": 1250')), Finding.MESSAGE_MISMATCH, Cause.BODY
    ),
    "a body with a float": StrangeBook(saying(total_cents=1250.5), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a body with text for a number": StrangeBook(saying(total_cents="1250"), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a body with more than a bigint": StrangeBook(saying(total_cents=10**20), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a body of two objects": StrangeBook(body(lambda said: said + said), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a credit without a transaction id": StrangeBook(
        credit_set("transaction_id = NULL"), Finding.WRONG_TRANSACTION, Cause.LEDGER
    ),
    "a second message with a larger amount": StrangeBook(told_again(total_cents=10**9), Finding.MESSAGE_MISMATCH, Cause.AMOUNT),
    "half message pending, and credited": StrangeBook(pending_and_credited, Finding.ORDER_WITHOUT_MESSAGE, Cause.PENDING),
    "a second COMMITTED row": StrangeBook(
        in_orders(f"INSERT INTO transactions VALUES ('V-' || ?1, ?1, 'COMMITTED', {AT_MS}, 'order')"),
        Finding.DUPLICATE_TRANSACTION,
    ),
    "an entry of an unknown kind": StrangeBook(
        in_credits(
            "INSERT INTO credits (order_id, kind, customer, points, amount_cents, message_id, created_at_ms)"
            " SELECT order_id, 'bonus', customer, 0, 0, '', created_at_ms FROM credits WHERE order_id = ?"
        ),
        Finding.UNKNOWN_ROW,
    ),
    "a transaction of an unknown kind": StrangeBook(
        in_orders(f"INSERT INTO transactions VALUES ('V-' || ?1, ?1, 'COMMITTED', {AT_MS}, 'gift')"), Finding.UNKNOWN_ROW
    ),
    "a credit that names another order's message": StrangeBook(
        credit_set("message_id = 'U-of-another'"), Finding.WRONG_TRANSACTION, Cause.OTHER_MESSAGE
    ),
    "a reversal that names another transaction": StrangeBook(
        cancelled("credits: UPDATE credits SET transaction_id = 'C-x' WHERE order_id = ? AND kind = 'reversal'"),
        Finding.REVERSAL_MISMATCH,
        Cause.UNASKED,
    ),
    "a reversal that was never announced": StrangeBook(
        reversed_without_being_announced, Finding.REVERSAL_MISMATCH, Cause.NO_MESSAGE
    ),
    "items renamed": StrangeBook(in_orders(_RENAMED), Finding.ITEMS_MISMATCH, Cause.ITEMS),
    "items requantified, and the same sum": StrangeBook(in_orders(_REQUANTIFIED), Finding.ITEMS_MISMATCH, Cause.ITEMS),
    "credited hours before it was placed": StrangeBook(
        credit_set(f"created_at_ms = {AT_MS} - {HOURS_MS}"), Finding.WRONG_TIME, Cause.TOO_EARLY
    ),
}

OF_OURS: Final[Mapping[str, StrangeBook]] = {
    "PAID, and no time of payment": StrangeBook(order_set(f"state = 'PAID', {_DATED}"), Finding.STATE_MISMATCH, Cause.ROWS),
    "PAID after its deadline": StrangeBook(paid(AT_MS + 50, AT_MS + 49), Finding.STATE_MISMATCH, Cause.ROWS),
    "PLACED, and ended": StrangeBook(order_set(_KEEPS), Finding.STATE_MISMATCH, Cause.ROWS),
    "PLACED, with a deadline for its payment": StrangeBook(order_set(_DATED), Finding.STATE_MISMATCH, Cause.ROWS),
    "EXPIRED before its deadline": StrangeBook(
        unpaid("EXPIRED", "ROLLED_BACK", f"pay_until_ms = {AT_MS + 10}", _KEEPS), Finding.STATE_MISMATCH, Cause.ROWS
    ),
    "EXPIRED, and its transaction PENDING": StrangeBook(
        unpaid("EXPIRED", "PENDING", _DATED, _KEEPS), Finding.STATE_MISMATCH, Cause.ROWS
    ),
    "EXPIRED, rolled back and credited": StrangeBook(
        unpaid("EXPIRED", "ROLLED_BACK", _DATED, _KEEPS, is_credited=True), Finding.ROLLED_BACK_ORDER, Cause.MARKER
    ),
    "CANCELLED, and no time": StrangeBook(
        cancelled("orders: UPDATE orders SET ended_at_ms = NULL WHERE order_id = ?"), Finding.STATE_MISMATCH, Cause.ROWS
    ),
    "a state in small letters": StrangeBook(order_set("state = 'placed'"), Finding.STATE_MISMATCH, Cause.STATE),
    "an empty state": StrangeBook(order_set("state = ''"), Finding.STATE_MISMATCH, Cause.STATE),
    "its cancellation told, and it stands": StrangeBook(
        cancellation_told_of_an_order_that_stands, Finding.STATE_MISMATCH, Cause.STANDS
    ),
    "cancelled twice": StrangeBook(
        cancelled(f"orders: INSERT INTO transactions VALUES ('D-' || ?1, ?1, 'COMMITTED', {AT_MS}, 'cancellation')"),
        Finding.DUPLICATE_TRANSACTION,
    ),
    "a transaction in an unknown state": StrangeBook(
        in_orders(f"INSERT INTO transactions VALUES ('V-' || ?1, ?1, 'DONE', {AT_MS}, 'order')"), Finding.UNKNOWN_ROW
    ),
    "a cancellation that was rolled back, by name": StrangeBook(
        in_orders(f"INSERT INTO transactions VALUES ('V-' || ?1, ?1, 'ROLLED_BACK', {AT_MS}, 'cancellation')"),
        Finding.UNKNOWN_ROW,
    ),
    "a COMMITTED row that names no order": StrangeBook(nameless_commit, Finding.TRANSACTION_WITHOUT_ORDER, Cause.ORDER_LOST),
    "PENDING, and its order row gone": StrangeBook(
        order_row_lost_while_it_awaits, Finding.TRANSACTION_WITHOUT_ORDER, Cause.ORDER_LOST
    ),
    "cancelled and reversed, and its order row gone": StrangeBook(
        cancelled("orders: DELETE FROM orders WHERE order_id = ?"), Finding.TRANSACTION_WITHOUT_ORDER, Cause.ORDER_LOST
    ),
    "a body with null for a number": StrangeBook(saying(total_cents=None), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a body in single quotes": StrangeBook(body(lambda said: said.replace(b'"', b"'")), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a body in a list": StrangeBook(body(lambda said: b"[" + said + b"]"), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a body with words behind it": StrangeBook(body(lambda said: said + b" or 9"), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a body without a date": StrangeBook(saying(created_at_ms=None), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "an empty body": StrangeBook(body(lambda _: b""), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a second message with a smaller amount": StrangeBook(told_again(total_cents=1), Finding.MESSAGE_MISMATCH, Cause.AMOUNT),
    "a second message for another customer": StrangeBook(told_again(customer="zoe"), Finding.MESSAGE_MISMATCH, Cause.CUSTOMER),
    "a second message in another currency": StrangeBook(told_again(currency="ZWL"), Finding.CURRENCY_MISMATCH),
    "a second message that nobody can read": StrangeBook(told_again(total_cents="?"), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a second message with more items": StrangeBook(
        told_again(items=[{"name": "book", "quantity": 2}] * 9), Finding.ITEMS_MISMATCH, Cause.ITEMS
    ),
    "an order that was dated back": StrangeBook(order_set(f"created_at_ms = {AT_MS - 5}"), Finding.MESSAGE_MISMATCH, Cause.TIME),
    "an item that the message leaves out": StrangeBook(
        saying(items=[{"name": "book", "quantity": 2}]), Finding.ITEMS_MISMATCH, Cause.ITEMS
    ),
    "a message of version 2 without items": StrangeBook(saying(items=None), Finding.ITEMS_MISMATCH, Cause.ITEMS),
    "quantities as text": StrangeBook(
        saying(items=[{"name": "book", "quantity": "2"}, {"name": "book", "quantity": 1}]),
        Finding.ITEMS_MISMATCH,
        Cause.ITEMS,
    ),
    "an amount at the end of its range": StrangeBook(saying(total_cents=-(2**63)), Finding.MESSAGE_MISMATCH, Cause.AMOUNT),
    "a date at the end of its range": StrangeBook(order_set(f"created_at_ms = {-(2**63) + 1}"), Finding.WRONG_TIME, Cause.PAST),
    "all below zero": StrangeBook(below_zero, Finding.AMOUNT_MISMATCH, Cause.BELOW_ZERO),
    "its transaction row dated 2100": StrangeBook(
        in_orders(f"UPDATE transactions SET created_at_ms = {YEAR_2100_MS} WHERE order_id = ?"),
        Finding.WRONG_TIME,
        Cause.FUTURE,
    ),
    "its message stored in 2100, and credited": StrangeBook(
        placed_at(AT_MS, stored_at_ms=YEAR_2100_MS, is_credited=True), Finding.WRONG_TIME, Cause.FUTURE
    ),
    "its credit dated 2100": StrangeBook(credit_set(f"created_at_ms = {YEAR_2100_MS}"), Finding.WRONG_TIME, Cause.FUTURE),
    "pending since 2100": StrangeBook(pending_in_the_future, Finding.WRONG_TIME, Cause.FUTURE),
    "announced before it was paid": StrangeBook(
        paid(AT_MS + 300_000, AT_MS + 300_000, delivered_at_ms=AT_MS), Finding.WRONG_TIME, Cause.TOO_EARLY
    ),
    "dated a moment ago, consumed long ago, not credited": StrangeBook(
        placed_at(AS_OF_MS), Finding.MISSING_CREDIT, Cause.CONSUMED
    ),
    "cancelled a moment ago, consumed long ago, not reversed": StrangeBook(
        cancelled_a_moment_ago_and_consumed_long_ago, Finding.MISSING_REVERSAL, Cause.CONSUMED
    ),
    "a reversal that calls itself a refusal": StrangeBook(
        cancelled("credits: UPDATE credits SET message_id = 'refused x' WHERE order_id = ? AND kind = 'reversal'"),
        Finding.REVERSAL_MISMATCH,
        Cause.UNASKED,
    ),
}


def two_lines_in_another_order(books: BrokenBooks, o: str) -> None:
    books.health(o, items=[{"name": "book", "quantity": 1}, {"name": "book", "quantity": 2}])


def names_in_other_letters(books: BrokenBooks, o: str) -> None:
    name = "本 «Пир» 🎉"
    books.health(o, items=[{"name": name, "quantity": 2}, {"name": "book", "quantity": 1}])
    books.in_orders(f"UPDATE order_items SET name = '{name}' WHERE order_id = ? AND quantity = 2", o)


def for_nothing(books: BrokenBooks, o: str) -> None:
    books.shop.add_orders([o], total_cents=0, at_ms=AT_MS, customer=f"customer of {o}")
    books.announce(o, total_cents=0)
    books.credit(o, amount_cents=0)


def for_more_than_an_int(books: BrokenBooks, o: str) -> None:
    books.shop.add_orders([o], total_cents=10**15, at_ms=AT_MS, customer=f"customer of {o}")
    books.announce(o, total_cents=10**15)
    books.credit(o, amount_cents=10**15)


def reversed_by_a_repair(books: BrokenBooks, o: str) -> None:
    books.health(o)
    books.cancel(o)
    books.reverse(o)


def refused_and_cancelled(books: BrokenBooks, o: str) -> None:
    books.place(o)
    books.announce(o)
    books.credit(o, amount_cents=0)
    books.in_credits("UPDATE credits SET message_id = 'refused ' || message_id WHERE order_id = ?", o)
    books.cancel(o)
    books.reverse(o, message_id=f"refused U-{o}", transaction_id=f"U-{o}")


def second_half_message_pending(books: BrokenBooks, o: str) -> None:
    books.health(o)
    books.half(o, decided=False)


def marker_of_a_cancellation(books: BrokenBooks, o: str) -> None:
    books.health(o)
    books.in_orders(f"INSERT INTO transactions VALUES ('C-' || ?, NULL, 'ROLLED_BACK', {AT_MS}, 'cancellation')", o)


def awaiting_for_days(books: BrokenBooks, o: str) -> None:
    books.place(o, AT_MS)
    books.half(o, AT_MS, decided=False)
    state = f"state = 'AWAITING_PAYMENT', pay_until_ms = {AS_OF_MS + 10**9}"
    books.in_orders(f"UPDATE orders SET {state} WHERE order_id = ?", o)
    books.in_orders("UPDATE transactions SET state = 'PENDING' WHERE order_id = ?", o)


def a_minute_ahead(books: BrokenBooks, o: str) -> None:
    books.place(o, AS_OF_MS + 60_000)


def a_day_ahead(books: BrokenBooks, o: str) -> None:
    """Creates an order with times one day ahead, from a machine with a wrong clock."""
    books.at_ms = AS_OF_MS + 24 * 3_600_000
    books.health(o)


def pending_an_hour_ahead(books: BrokenBooks, o: str) -> None:
    books.place(o, LATE_MS)
    books.half(o, AS_OF_MS + HOURS_MS // 2, decided=False)


def published_by_a_repair(books: BrokenBooks, o: str) -> None:
    """Publishes a plain message of an order whose half message was lost."""
    books.place(o)
    books.publish(o)
    books.credit(o)


def published_by_nothing(books: BrokenBooks, o: str) -> None:
    """Publishes a plain message of an order whose half message was rolled back. No repair step published the message."""
    books.place(o)
    books.half(o)
    books.publish(o, step=None)
    books.credit(o)
    books.audited.append(("3", Action.RESUME, o))


def reversed_by(message_id: str, *, is_cancelled: bool = True, at_ms: int = AT_MS) -> Telling:
    """Returns a function that creates a reversal in the name of a repair. No line of the audit contains the repair."""

    def tell(books: BrokenBooks, o: str) -> None:
        if is_cancelled:
            books.health(o)
            books.cancel(o)
        else:
            books.half(o)
            books.credit(o)
        books.reverse(o, message_id=message_id, is_audited=False)
        books.in_credits(f"UPDATE credits SET created_at_ms = {at_ms} WHERE order_id = ? AND kind = 'reversal'", o)

    return tell


def reversed_by_the_step_of_another_order(books: BrokenBooks, o: str) -> None:
    reversed_by("repair 4")(books, o)
    books.audited += [("4", Action.REVERSE, f"another than {o}"), ("4", Action.PUBLISH, o), ("5", Action.REVERSE, o)]


def credited_and_reversed_by_a_repair(books: BrokenBooks, o: str) -> None:
    """Creates a credit and its reversal without an order. The reversal's message id has characters that SQL and JSON escape."""
    books.half(o)
    books.credit(o)
    books.reverse(o, message_id='repair it\'s \\x "6" ü')


def cancellation_outside_of_a_transaction(books: BrokenBooks, o: str) -> None:
    books.health(o)
    books.cancel(o, decided=False)
    books.log.decide_latest()
    said = {"customer": f"customer of {o}", "version": 1, "cancelled_at_ms": AT_MS, "reason": "as asked"}
    books.log.append("order_cancellations", o, f"C-{o}", AT_MS, body=order_body(o, **said))
    books.take_back(o)


def told_cancelled(*, is_reversed: bool = True, **told: Any) -> Telling:
    """Returns a function that creates a cancelled order whose only fault is its cancellation message, changed by `told`.

    It also reverses the credit, unless `is_reversed` is False.
    """

    def tell(books: BrokenBooks, o: str) -> None:
        books.health(o)
        books.cancel(o, **told)
        if is_reversed:
            books.take_back(o)

    return tell


def cancelled_and_told_again(**told: Any) -> Telling:
    """Returns a function that creates a cancelled and reversed order, and a second message of its cancellation."""

    def tell(books: BrokenBooks, o: str) -> None:
        cancelled()(books, o)
        books.tell_cancellation(o, **told)

    return tell


def expired_and(then: Callable[[BrokenBooks, str], object]) -> Telling:
    """Returns a function that creates an expired order, and then applies the fault `then`."""

    def tell(books: BrokenBooks, o: str) -> None:
        unpaid("EXPIRED", "ROLLED_BACK", _DATED, _KEEPS)(books, o)
        then(books, o)

    return tell


def awaiting_and(statement: str) -> Telling:
    """Returns a function that creates an order that awaits its payment, and then executes a statement in the order database."""

    def tell(books: BrokenBooks, o: str) -> None:
        awaiting_for_days(books, o)
        books.in_orders(statement, o)

    return tell


def not_consumed_yet(statement: str = "", **said: object) -> Telling:
    """Returns a function that creates an order whose message was just delivered, and then executes a statement."""

    def tell(books: BrokenBooks, o: str) -> None:
        books.at_ms = AS_OF_MS - GRACE_SECONDS * 1000 - 9
        books.place(o)
        books.half(o)
        books.deliver(o, AS_OF_MS - 9, **said)
        if statement:
            books.in_orders(statement, o)

    return tell


def then_cancelled(change: Telling) -> Telling:
    """Returns a function that applies `change` to an order, and then cancels and reverses the order."""

    def tell(books: BrokenBooks, o: str) -> None:
        change(books, o)
        books.cancel(o)
        books.take_back(o)

    return tell


def without_keys(table: str, statement: str) -> Telling:
    """Returns a function that creates a healthy order, removes the table's primary key, and executes a statement.

    The statement is executed in the order database.
    """

    def tell(books: BrokenBooks, o: str) -> None:
        cancelled()(books, o) if "cancellation" in statement else books.health(o)
        books.shop.orders.executescript(
            f"CREATE TABLE copy AS SELECT * FROM {table}; DROP TABLE {table}; ALTER TABLE copy RENAME TO {table};"
        )
        books.in_orders(statement, o)

    return tell


def announced_without_half(books: BrokenBooks, o: str) -> None:
    books.place(o)
    books.deliver(o)
    books.credit(o)


def all_in(currency: str) -> Telling:
    """Returns a function that creates an order whose order row and message have the same currency."""

    def tell(books: BrokenBooks, o: str) -> None:
        books.place(o, currency=currency)
        books.announce(o, currency=currency)
        books.credit(o)

    return tell


def all_of(customer: str) -> Telling:
    """Returns a function that creates an order whose order row, message and credit have the same customer."""

    def tell(books: BrokenBooks, o: str) -> None:
        books.health(o, customer=customer)
        books.in_orders(f"UPDATE orders SET customer = '{customer}' WHERE order_id = ?", o)
        books.in_credits("DELETE FROM balances WHERE customer = 'customer of ' || ?", o)
        books.in_credits(f"UPDATE credits SET customer = '{customer}' WHERE order_id = ?", o)
        books.in_credits(f"INSERT INTO balances SELECT '{customer}', 12 WHERE ? <> ''", o)

    return tell


def items_below_zero(books: BrokenBooks, o: str) -> None:
    books.health(o, items=[{"name": "book", "quantity": -2}, {"name": "book", "quantity": 1}])
    books.in_orders("UPDATE order_items SET quantity = -2, price_cents = -625 WHERE order_id = ? AND quantity = 2", o)


def credit_below_zero_and_reversed(books: BrokenBooks, o: str) -> None:
    books.credit(o, amount_cents=-1200)
    books.reverse(o)


def credit_of_other_points_and_reversed(books: BrokenBooks, o: str) -> None:
    books.credit(o)
    books.in_credits("UPDATE credits SET points = 99 WHERE order_id = ?", o)
    books.reverse(o)
    books.in_credits("UPDATE balances SET points = 0 WHERE customer = 'customer of ' || ?", o)


def cancellation_of_nothing(books: BrokenBooks, o: str) -> None:
    books.tell_cancellation(o)


_AGES_AGO: Final = AT_MS - HOURS_MS

CANCELLATION_FIELDS: Final[Mapping[str, tuple[object, Finding, Cause | None]]] = {
    "customer": ("zoe", Finding.MESSAGE_MISMATCH, Cause.CUSTOMER),
    "total_cents": (1251, Finding.MESSAGE_MISMATCH, Cause.AMOUNT),
    "currency": ("ZWL", Finding.CURRENCY_MISMATCH, None),
    "cancelled_at_ms": (AT_MS + 1, Finding.MESSAGE_MISMATCH, Cause.TIME),
}
"""Each field of a cancellation's message that another witness knows: another value, and what is found of it."""

OF_CANCELLATIONS: Final[Mapping[str, StrangeBook]] = {
    **{
        f"a cancellation that says another {field}": StrangeBook(told_cancelled(**{field: value}), finding, cause)
        for field, (value, finding, cause) in CANCELLATION_FIELDS.items()
    },
    **{
        f"a second message of its cancellation with another {field}": StrangeBook(
            cancelled_and_told_again(born=2, **{field: value}), finding, cause
        )
        for field, (value, finding, cause) in CANCELLATION_FIELDS.items()
    },
    **{
        f"a cancellation without {field}": StrangeBook(told_cancelled(**{field: None}), Finding.MESSAGE_MISMATCH, Cause.BODY)
        for field in ("customer", "total_cents", "currency", "cancelled_at_ms", "reason")
    },
    "a cancellation that is no JSON": StrangeBook(
        told_cancelled(change=lambda _: b"cancelled"), Finding.MESSAGE_MISMATCH, Cause.BODY
    ),
    "a cancellation of two objects": StrangeBook(
        told_cancelled(change=lambda said: said + said), Finding.MESSAGE_MISMATCH, Cause.BODY
    ),
    "a cancellation of version 0": StrangeBook(told_cancelled(version=0), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a cancellation with a key of another": StrangeBook(
        told_cancelled(key="another-order"), Finding.MESSAGE_MISMATCH, Cause.NAME
    ),
    "a cancellation by another transaction": StrangeBook(
        told_cancelled(unique_key="C-x"), Finding.MESSAGE_MISMATCH, Cause.TRANSACTION
    ),
    "a cancellation without a half message": StrangeBook(told_cancelled(half=False), Finding.MESSAGE_MISMATCH, Cause.NO_HALF),
    "a cancellation that was delivered twice": StrangeBook(cancelled_and_told_again(half=False), Finding.DOUBLED_DELIVERY),
    "a cancellation of an EXPIRED order": StrangeBook(
        expired_and(lambda books, o: books.tell_cancellation(o)), Finding.STATE_MISMATCH, Cause.ROWS
    ),
    "a cancellation of nothing": StrangeBook(cancellation_of_nothing, Finding.MESSAGE_WITHOUT_ORDER, Cause.NO_TRANSACTION),
    "a cancellation that was told before it was written": StrangeBook(
        cancelled(f"orders: UPDATE transactions SET created_at_ms = {AT_MS + 200_000} WHERE transaction_id = 'C-' || ?"),
        Finding.WRONG_TIME,
        Cause.TOO_EARLY,
    ),
}

OF_VALUES: Final[Mapping[str, StrangeBook]] = {
    "announced without a half message": StrangeBook(announced_without_half, Finding.MESSAGE_MISMATCH, Cause.NO_HALF),
    "a message of version 0": StrangeBook(saying(version=0), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "a currency in small letters": StrangeBook(all_in("eur"), Finding.UNKNOWN_ROW, Cause.VALUE),
    "a currency of four letters": StrangeBook(all_in("EURO"), Finding.UNKNOWN_ROW, Cause.VALUE),
    "no currency": StrangeBook(all_in(""), Finding.UNKNOWN_ROW, Cause.VALUE),
    "a currency with a line break": StrangeBook(all_in("EUR\n"), Finding.UNKNOWN_ROW, Cause.VALUE),
    "a currency of other letters": StrangeBook(all_in("\u0415UR"), Finding.UNKNOWN_ROW, Cause.VALUE),
    "a customer without a name": StrangeBook(all_of(""), Finding.UNKNOWN_ROW, Cause.VALUE),
    "a customer with a name too long": StrangeBook(all_of("c" * 101), Finding.UNKNOWN_ROW, Cause.VALUE),
    "a quantity below zero, and the same sum": StrangeBook(items_below_zero, Finding.UNKNOWN_ROW, Cause.VALUE),
    "a credit below zero, and its reversal": StrangeBook(credit_below_zero_and_reversed, Finding.UNKNOWN_ROW, Cause.VALUE),
    "a credit of other points, and its reversal": StrangeBook(
        credit_of_other_points_and_reversed, Finding.UNKNOWN_ROW, Cause.VALUE
    ),
    "paid before it was placed": StrangeBook(
        order_set(f"state = 'PAID', pay_until_ms = {AT_MS}, paid_at_ms = {_AGES_AGO}"), Finding.WRONG_TIME, Cause.TOO_EARLY
    ),
    "to be paid before it was placed": StrangeBook(
        unpaid("EXPIRED", "ROLLED_BACK", f"pay_until_ms = {_AGES_AGO}", _KEEPS), Finding.WRONG_TIME, Cause.TOO_EARLY
    ),
    "cancelled before it was placed": StrangeBook(
        unpaid("CANCELLED", "ROLLED_BACK", _DATED, f"ended_at_ms = {_AGES_AGO}"), Finding.WRONG_TIME, Cause.TOO_EARLY
    ),
    "expired before it was placed": StrangeBook(
        unpaid("EXPIRED", "ROLLED_BACK", f"pay_until_ms = {_AGES_AGO}", f"ended_at_ms = {_AGES_AGO}"),
        Finding.WRONG_TIME,
        Cause.TOO_EARLY,
    ),
    "told, and cancelled before it was placed": StrangeBook(
        cancelled(
            f"orders: UPDATE transactions SET created_at_ms = {_AGES_AGO} WHERE transaction_id = 'C-' || ?",
        ),
        Finding.WRONG_TIME,
        Cause.TOO_EARLY,
    ),
    "its transaction older than itself": StrangeBook(
        in_orders(f"UPDATE transactions SET created_at_ms = {_AGES_AGO} WHERE order_id = ?"), Finding.WRONG_TIME, Cause.TOO_EARLY
    ),
    "its reversal older than itself": StrangeBook(
        cancelled(f"credits: UPDATE credits SET created_at_ms = {_AGES_AGO} WHERE order_id = ? AND kind = 'reversal'"),
        Finding.WRONG_TIME,
        Cause.TOO_EARLY,
    ),
    "EXPIRED, with other items": StrangeBook(
        expired_and(lambda books, o: books.in_orders("UPDATE order_items SET price_cents = 1 WHERE order_id = ?", o)),
        Finding.ITEMS_MISMATCH,
    ),
    "EXPIRED, with a total below zero": StrangeBook(
        expired_and(lambda books, o: books.in_orders("UPDATE orders SET total_cents = -1 WHERE order_id = ?", o)),
        Finding.AMOUNT_MISMATCH,
        Cause.BELOW_ZERO,
    ),
    "EXPIRED, in no currency": StrangeBook(
        expired_and(lambda books, o: books.in_orders("UPDATE orders SET currency = '€' WHERE order_id = ?", o)),
        Finding.UNKNOWN_ROW,
        Cause.VALUE,
    ),
    "EXPIRED, and its items gone": StrangeBook(
        expired_and(lambda books, o: books.in_orders("DELETE FROM order_items WHERE order_id = ?", o)), Finding.ITEMS_MISMATCH
    ),
    "awaits its payment, with other items": StrangeBook(
        awaiting_and("UPDATE order_items SET price_cents = 1 WHERE order_id = ?"), Finding.ITEMS_MISMATCH
    ),
    "awaits its payment, with a total below zero": StrangeBook(
        awaiting_and("UPDATE orders SET total_cents = -1250 WHERE order_id = ?"), Finding.AMOUNT_MISMATCH, Cause.BELOW_ZERO
    ),
    "awaits its payment, in no currency": StrangeBook(
        awaiting_and("UPDATE orders SET currency = '' WHERE order_id = ?"), Finding.UNKNOWN_ROW, Cause.VALUE
    ),
    "not consumed yet, with another amount": StrangeBook(not_consumed_yet(total_cents=9), Finding.MESSAGE_MISMATCH, Cause.AMOUNT),
    "not consumed yet, for another customer": StrangeBook(
        not_consumed_yet(customer="zoe"), Finding.MESSAGE_MISMATCH, Cause.CUSTOMER
    ),
    "not consumed yet, in another currency": StrangeBook(not_consumed_yet(currency="ZWL"), Finding.CURRENCY_MISMATCH),
    "not consumed yet, with other items": StrangeBook(
        not_consumed_yet(items=[{"name": "atlas", "quantity": 1}]), Finding.ITEMS_MISMATCH, Cause.ITEMS
    ),
    "not consumed yet, and unreadable": StrangeBook(not_consumed_yet(total_cents="?"), Finding.MESSAGE_MISMATCH, Cause.BODY),
    "not consumed yet, and its total raised": StrangeBook(
        not_consumed_yet("UPDATE orders SET total_cents = 9900 WHERE order_id = ?"), Finding.ITEMS_MISMATCH
    ),
    "cancelled, and another amount": StrangeBook(
        then_cancelled(credit_set("amount_cents = 9900, points = 99")), Finding.AMOUNT_MISMATCH, Cause.LEDGER
    ),
    "a marker beside its COMMITTED row": StrangeBook(
        without_keys("transactions", "INSERT INTO transactions VALUES ('U-' || ?, NULL, 'ROLLED_BACK', 1, 'order')"),
        Finding.ROLLED_BACK_ORDER,
        Cause.MARKER,
    ),
    "a ROLLED_BACK row beside its COMMITTED row": StrangeBook(
        without_keys("transactions", f"INSERT INTO transactions VALUES ('U-' || ?1, ?1, 'ROLLED_BACK', {AT_MS}, 'order')"),
        Finding.ROLLED_BACK_ORDER,
        Cause.MARKER,
    ),
    "a marker beside its cancellation": StrangeBook(
        without_keys("transactions", "INSERT INTO transactions VALUES ('C-' || ?, NULL, 'ROLLED_BACK', 1, 'cancellation')"),
        Finding.ROLLED_BACK_ORDER,
        Cause.MARKER,
    ),
}

OF_REPAIRS: Final[Mapping[str, StrangeBook]] = {
    "cancelled, and reversed by a repair that no audit names": StrangeBook(
        reversed_by("repair 7"), Finding.REVERSAL_MISMATCH, Cause.UNAUDITED
    ),
    "credited without an order, and reversed by a repair that no audit names": StrangeBook(
        reversed_by("repair 8", is_cancelled=False), Finding.REVERSAL_MISMATCH, Cause.UNAUDITED
    ),
    "reversed by a repair of another order": StrangeBook(
        reversed_by_the_step_of_another_order, Finding.REVERSAL_MISMATCH, Cause.UNAUDITED
    ),
    "reversed by a repair without a name": StrangeBook(reversed_by("repair "), Finding.REVERSAL_MISMATCH, Cause.UNAUDITED),
    "published by no repair that an audit names": StrangeBook(published_by_nothing, Finding.MESSAGE_MISMATCH, Cause.UNAUDITED),
    "its cancellation sent outside of a transaction": StrangeBook(
        cancellation_outside_of_a_transaction, Finding.MESSAGE_MISMATCH, Cause.UNAUDITED
    ),
}


RIGHT: Final[Mapping[str, StrangeBook]] = {
    "two lines of one article, in another order": StrangeBook(two_lines_in_another_order, Finding.MATCHED),
    "names in other letters": StrangeBook(names_in_other_letters, Finding.MATCHED),
    "announced in version 1, without items": StrangeBook(
        body(lambda said: json.dumps({**_without(json.loads(said), "items", "version")}).encode()), Finding.MATCHED
    ),
    "announced in version 3, with more fields": StrangeBook(saying(version=3, coupon=["x"]), Finding.MATCHED),
    "a body with blanks and its fields turned round": StrangeBook(
        body(lambda said: json.dumps(dict(reversed(json.loads(said).items())), indent=4).encode()), Finding.MATCHED
    ),
    "sent twice after a time-out": StrangeBook(told_again(), Finding.MATCHED),
    "delivered, and a second half message pending": StrangeBook(second_half_message_pending, Finding.MATCHED),
    "clocks that differ by 90 s": StrangeBook(credit_set(f"created_at_ms = {AT_MS - 90_000}"), Finding.MATCHED),
    "for nothing": StrangeBook(for_nothing, Finding.MATCHED),
    "for ten billion units": StrangeBook(for_more_than_an_int, Finding.MATCHED),
    "paid long after it was placed": StrangeBook(paid(AT_MS + 600_000, AT_MS + 600_000), Finding.MATCHED),
    "cancelled": StrangeBook(cancelled(), Finding.REVERSED),
    "cancelled, and reversed by a repair": StrangeBook(reversed_by_a_repair, Finding.REVERSED),
    "cancelled, and reversed before it was credited": StrangeBook(
        cancelled(f"credits: UPDATE credits SET created_at_ms = {AT_MS + 9} WHERE order_id = ? AND kind = 'credit'"),
        Finding.REVERSED,
    ),
    "refused by the credit service": StrangeBook(refused_and_cancelled, Finding.REVERSED),
    "the marker of a cancellation": StrangeBook(marker_of_a_cancellation, Finding.MATCHED),
    "cancelled, and told twice after a time-out": StrangeBook(cancelled_and_told_again(born=2), Finding.REVERSED),
    "cancelled, by a message of version 2 with more fields": StrangeBook(told_cancelled(version=2, shop=4), Finding.REVERSED),
    "cancelled by a clock that is 90 s behind": StrangeBook(
        cancelled(f"orders: UPDATE transactions SET created_at_ms = {AT_MS - 90_000} WHERE transaction_id = 'C-' || ?"),
        Finding.REVERSED,
    ),
    "placed and credited a day ahead": StrangeBook(a_day_ahead, Finding.MATCHED),
    "its credit an hour ahead": StrangeBook(credit_set(f"created_at_ms = {AS_OF_MS + HOURS_MS}"), Finding.MATCHED),
    "pending since an hour ahead": StrangeBook(pending_an_hour_ahead, Finding.IN_FLIGHT, Cause.PENDING),
    "published again by a repair": StrangeBook(published_by_a_repair, Finding.MATCHED),
    "credited without an order, and reversed by a repair": StrangeBook(credited_and_reversed_by_a_repair, Finding.REVERSED),
    "reversed by a repair a moment ago, after the audit was read": StrangeBook(
        reversed_by("repair 9", at_ms=AS_OF_MS - 1), Finding.IN_FLIGHT, Cause.YOUNG
    ),
    "a customer with the longest name": StrangeBook(all_of("ß" * 100), Finding.MATCHED),
    "in yen": StrangeBook(all_in("JPY"), Finding.MATCHED),
    "delivered, and not consumed yet": StrangeBook(not_consumed_yet(), Finding.IN_FLIGHT, Cause.YOUNG),
    "expired": StrangeBook(unpaid("EXPIRED", "ROLLED_BACK", _DATED, _KEEPS), Finding.ENDED),
    "cancelled before it was paid": StrangeBook(
        unpaid("CANCELLED", "ROLLED_BACK", f"pay_until_ms = {AT_MS + 9}", _KEEPS), Finding.ENDED
    ),
    "awaits its payment for days, as agreed": StrangeBook(awaiting_for_days, Finding.IN_FLIGHT, Cause.PENDING),
    "placed a minute ahead of our clock": StrangeBook(a_minute_ahead, Finding.IN_FLIGHT, Cause.YOUNG),
}

WRONG: Final[Mapping[str, StrangeBook]] = {**OF_THE_ISSUE, **OF_OURS, **OF_CANCELLATIONS, **OF_VALUES, **OF_REPAIRS}
ALL: Final[Mapping[str, StrangeBook]] = {**WRONG, **RIGHT}
TITLES: Final = {
    "of the issue": OF_THE_ISSUE,
    "of ours": OF_OURS,
    "of cancellations": OF_CANCELLATIONS,
    "of values": OF_VALUES,
    "of repairs": OF_REPAIRS,
    "right": RIGHT,
}

Told = tuple[str, str | None]


def _without(said: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name not in names}


CUT_OFF: Final = CutOff(AS_OF_MS, GRACE_SECONDS, OVERDUE_SECONDS)
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
    addresses = [parse_database_url(url) for url in (shop.orders_url, shop.credits_url)]
    shop.close()
    books.write_audit(folder / "audit.jsonl")
    return Books(*addresses, (books.log.store,), read_repairs=partial(known_repairs, [folder / "audit.jsonl"]))


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


def main() -> None:
    with TemporaryDirectory() as folder:
        told = judged(reconcile_embedded, Path(folder))
    for title, chosen in TITLES.items():
        for name in chosen:
            finding, cause = told[name] or ("healthy", None)
            is_found = finding not in (*CONSISTENT, "healthy")
            print(f"| {title} | {name} | {'found' if is_found else '-'} | {finding} | {cause or ''} |")


if __name__ == "__main__":
    main()
