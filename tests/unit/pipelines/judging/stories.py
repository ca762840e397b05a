"""What can happen to an order, told as events: a healthy order, what is on its way, and each fault that is to be found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pipelines.judging.classes import Cause, Finding
from pipelines.judging.cut_off import CutOff

CUT_OFF = CutOff(as_of_ms=100_000_000, grace_seconds=100, overdue_seconds=10_000)
OLD = CUT_OFF.judged_until_ms
YOUNG = OLD + 1
ANCIENT = CUT_OFF.overdue_until_ms

Event = dict[str, object]


@dataclass(frozen=True)
class Story:
    """Events, and what is to be found of them; `markers` are transactions with a ROLLED_BACK marker."""

    events: list[Event]
    finding: Finding
    cause: Cause | None = None
    markers: list[str] = field(default_factory=list)


def order(order_id: str, at: int = OLD, cents: int = 1250, **more: object) -> Event:
    said = {"order_rows": 1, "customer": "ada", "order_cents": cents, "currency": "EUR", "expected_points": cents // 100}
    return {"order_id": order_id, "ordered_at_ms": at, **said, **more}


def item(order_id: str, cents: int = 1250) -> Event:
    return {"order_id": order_id, "item_cents": cents}


def committed(order_id: str, at: int = OLD) -> Event:
    return {"order_id": order_id, "committed_rows": 1, "transaction_id": f"T-{order_id}", "decided_at_ms": at}


def placed(order_id: str, at: int = OLD, **more: object) -> list[Event]:
    """What the local transaction writes."""
    return [order(order_id, at, **more), item(order_id, 1000), item(order_id, 250), committed(order_id, at)]


def half(order_id: str, at: int = OLD, *, decided: bool = True) -> Event:
    return {
        "order_id": order_id, "halves": 1, "half_at_ms": at, "last_half_at_ms": at, "half_transaction_id": f"T-{order_id}",
        "last_decided_half_at_ms": at if decided else None,
    }  # fmt: skip


def delivered(order_id: str, at: int = OLD, *, consumed: bool | None = True, born: int = OLD, **more: object) -> Event:
    known = {} if consumed is None else {"consumed" if consumed else "unconsumed": 1}
    return {
        "order_id": order_id, "deliveries": 1, "delivered_at_ms": at, "last_delivered_at_ms": at, "born_at_ms": born,
        "last_born_at_ms": born, "message_transaction_id": f"T-{order_id}", "message_cents": 1250, "message_currency": "EUR",
        "message_customer": "ada", **known, **more,
    }  # fmt: skip


def credit(order_id: str, at: int = OLD, transaction_id: str | None = None, **more: object) -> Event:
    transaction = transaction_id or f"T-{order_id}"
    said = {"credit_rows": 1, "credit_cents": 1250, "points": 12, "credited_customer": "ada", "credited_at_ms": at}
    named = {"credit_transaction_id": transaction, "last_credit_transaction_id": transaction}
    told = {"order_id": order_id, **said, **named, **more}
    return {**told, "last_credited_customer": told["credited_customer"]}


def reversal(order_id: str, at: int = OLD, **more: object) -> Event:
    said = {"reversal_rows": 1, "reversal_cents": 1250, "reversal_points": -12, "credited_at_ms": at}
    return {"order_id": order_id, **said, "credited_customer": "ada", "last_credited_customer": "ada", **more}


def refused(order_id: str) -> list[Event]:
    """A credit and a reversal over nothing: the credit service settles an order that cannot be credited."""
    return [credit(order_id, credit_cents=0, points=0), reversal(order_id, reversal_cents=0, reversal_points=0)]


def cancelled(order_id: str, at: int = OLD) -> Event:
    return {"order_id": order_id, "cancelled_rows": 1, "cancelled_at_ms": at}


def cancellation(order_id: str, *, consumed: bool = True) -> Event:
    return {"order_id": order_id, "cancel_deliveries": 1, "unconsumed_cancellations": None if consumed else 1}


def unpaid(order_id: str, state: str, at: int = OLD, **more: object) -> list[Event]:
    """An order that is to be paid later, before its transaction is COMMITTED."""
    return [order(order_id, at, order_state=state), item(order_id), {"order_id": order_id, "decided_at_ms": at, **more}]


def discarded(order_id: str, at: int = OLD) -> Event:
    return {"order_id": order_id, "discards": 1, "discarded_at_ms": at}


def delayed(order_id: str, at: int = OLD) -> Event:
    return {"order_id": order_id, "delayed_at_ms": at}


def retried(order_id: str, at: int = OLD, *, consumed: bool = True) -> Event:
    return {"order_id": order_id, "retries": 1, "retried_at_ms": at, "unconsumed_retries": None if consumed else 1}


def dead(order_id: str, at: int = OLD) -> Event:
    return {"order_id": order_id, "dead_letters": 1, "dead_at_ms": at}


def damage(order_id: str | None) -> Event:
    return {"order_id": order_id, "unnamed": None if order_id else "at 77", "damaged": 1}


def announced(order_id: str, **more: object) -> list[Event]:
    return [half(order_id), delivered(order_id, **more)]


def healthy(order_id: str) -> list[Event]:
    return [*placed(order_id), *announced(order_id), credit(order_id)]


def without(events: Iterable[Event], column: str) -> list[Event]:
    """The events but those that say something in this column."""
    return [event for event in events if event.get(column) is None]


def _changed(events: Iterable[Event], column: str, value: object) -> list[Event]:
    return [{**event, column: value} if event.get(column) is not None else event for event in events]


Telling = Callable[[str], Story]

HEALTHY: dict[str, Telling] = {
    "credited": lambda o: Story(healthy(o), Finding.MATCHED),
    "credited, and young": lambda o: Story(
        [*placed(o, YOUNG), half(o, YOUNG), delivered(o, YOUNG), credit(o, YOUNG)], Finding.MATCHED
    ),
    "credited; a dead letter before that": lambda o: Story(
        [*placed(o), *announced(o), delayed(o, 1), retried(o, 2), dead(o, 3), retried(o, 4), credit(o)], Finding.MATCHED
    ),
    "credited; sent twice after a time-out": lambda o: Story(
        [*healthy(o), half(o), delivered(o, born=OLD - 5_000)], Finding.MATCHED
    ),
    "credited; discarded and resumed": lambda o: Story(
        [*placed(o), half(o, 1, decided=False), discarded(o, 2), half(o, 3), delivered(o, 4), credit(o)], Finding.MATCHED
    ),
    "credited, and its items not read": lambda o: Story(
        without([*placed(o, YOUNG), *announced(o), credit(o, YOUNG)], "item_cents"), Finding.MATCHED
    ),
    "rolled back": lambda o: Story([half(o)], Finding.ROLLED_BACK, None, [f"T-{o}"]),
    "rolled back without a marker": lambda o: Story([half(o)], Finding.ROLLED_BACK),
    "cancelled": lambda o: Story([*healthy(o), cancelled(o), cancellation(o), reversal(o)], Finding.REVERSED),
    "cancelled a moment ago": lambda o: Story([*healthy(o), cancelled(o, YOUNG)], Finding.IN_FLIGHT, Cause.CANCELLING),
    "cancelled, and not consumed": lambda o: Story(
        [*healthy(o), cancelled(o), cancellation(o, consumed=False)], Finding.IN_FLIGHT, Cause.CANCELLING
    ),
    "cancelled, and pending": lambda o: Story(
        [*healthy(o), cancelled(o), {"order_id": o, "cancel_halves": 1, "last_cancel_half_at_ms": OLD}],
        Finding.IN_FLIGHT,
        Cause.CANCELLING,
    ),
    "cancelled, and waits for its redelivery": lambda o: Story(
        [*healthy(o), cancelled(o), cancellation(o), delayed(o)], Finding.IN_FLIGHT, Cause.REDELIVERING
    ),
    "awaits its payment": lambda o: Story([*unpaid(o, "AWAITING_PAYMENT")], Finding.IN_FLIGHT, Cause.AWAITING_PAYMENT),
    "awaits its payment, and pending": lambda o: Story(
        [*unpaid(o, "AWAITING_PAYMENT"), half(o, decided=False)], Finding.IN_FLIGHT, Cause.PENDING
    ),
    "expired": lambda o: Story([*unpaid(o, "EXPIRED", rolled_back_rows=1), half(o)], Finding.ENDED),
    "cancelled before it was paid": lambda o: Story([*unpaid(o, "CANCELLED", rolled_back_rows=1), half(o)], Finding.ENDED),
    "refused by the credit service, and cancelled": lambda o: Story(
        [*placed(o), *announced(o), *refused(o), cancelled(o), cancellation(o)], Finding.REVERSED
    ),
    "credit invented, and reversed": lambda o: Story([credit(o), reversal(o)], Finding.REVERSED),
    "credit of a rollback, reversed": lambda o: Story(
        [*announced(o), credit(o), reversal(o)], Finding.REVERSED, None, [f"T-{o}"]
    ),
    "young reversal": lambda o: Story([reversal(o, YOUNG)], Finding.IN_FLIGHT, Cause.YOUNG),
    "discarded without an order": lambda o: Story(
        [half(o, 1, decided=False), discarded(o, 2)], Finding.ROLLED_BACK, Cause.DISCARDED
    ),
    "young order": lambda o: Story(placed(o, YOUNG), Finding.IN_FLIGHT, Cause.YOUNG),
    "young credit": lambda o: Story([credit(o, YOUNG)], Finding.IN_FLIGHT, Cause.YOUNG),
    "young message": lambda o: Story([half(o), delivered(o, YOUNG)], Finding.IN_FLIGHT, Cause.YOUNG),
    "young transaction row": lambda o: Story([committed(o, YOUNG)], Finding.IN_FLIGHT, Cause.YOUNG),
    "items alone": lambda o: Story([item(o)], Finding.IN_FLIGHT, Cause.YOUNG),
    "pending": lambda o: Story([*placed(o), half(o, decided=False)], Finding.IN_FLIGHT, Cause.PENDING),
    "pending, and moved forward": lambda o: Story(
        [*placed(o), half(o, OLD - 5), half(o, decided=False)], Finding.IN_FLIGHT, Cause.PENDING
    ),
    "pending without an order": lambda o: Story([half(o, decided=False)], Finding.IN_FLIGHT, Cause.PENDING),
    "pending again after it was discarded": lambda o: Story(
        [*placed(o), half(o, OLD - 9, decided=False), discarded(o, OLD - 8), half(o, OLD - 7, decided=False)],
        Finding.IN_FLIGHT,
        Cause.PENDING,
    ),
    "not consumed": lambda o: Story([*placed(o), *announced(o, consumed=False)], Finding.IN_FLIGHT, Cause.NOT_CONSUMED),
    "waits for its redelivery": lambda o: Story([*placed(o), *announced(o), delayed(o)], Finding.IN_FLIGHT, Cause.REDELIVERING),
    "redelivered, and not consumed": lambda o: Story(
        [*placed(o), *announced(o), delayed(o), retried(o, consumed=False)], Finding.IN_FLIGHT, Cause.REDELIVERING
    ),
    "a dead letter that is tried anew": lambda o: Story(
        [*placed(o), *announced(o), dead(o, OLD - 1), retried(o, consumed=False)], Finding.IN_FLIGHT, Cause.REDELIVERING
    ),
    "delivered a moment ago": lambda o: Story(
        [*placed(o), half(o), delivered(o, YOUNG, consumed=None)], Finding.IN_FLIGHT, Cause.YOUNG
    ),
}

FAULTS: dict[str, Telling] = {
    "credit lost": lambda o: Story([*placed(o), *announced(o)], Finding.MISSING_CREDIT, Cause.CONSUMED),
    "credit missing, consumption unknown": lambda o: Story(
        [*placed(o), *announced(o, consumed=None)], Finding.MISSING_CREDIT, Cause.DELIVERED
    ),
    "dead letter": lambda o: Story([*placed(o), *announced(o), dead(o)], Finding.MISSING_CREDIT, Cause.DEAD_LETTER),
    "dead letter after a retry": lambda o: Story(
        [*placed(o), *announced(o), delayed(o, 1), retried(o, 2), dead(o, 3)], Finding.MISSING_CREDIT, Cause.DEAD_LETTER
    ),
    "discarded": lambda o: Story(
        [*placed(o), half(o, OLD - 1, decided=False), discarded(o)], Finding.MISSING_CREDIT, Cause.DISCARDED
    ),
    "COMMIT taken for ROLLBACK": lambda o: Story([*placed(o), half(o)], Finding.MISSING_CREDIT, Cause.ROLLED_BACK),
    "never announced": lambda o: Story(placed(o), Finding.MISSING_CREDIT, Cause.NO_MESSAGE),
    "an order from nowhere": lambda o: Story(without(placed(o), "committed_rows"), Finding.MISSING_CREDIT, Cause.NO_TRANSACTION),
    "message damaged": lambda o: Story([*placed(o), half(o), damage(o)], Finding.MISSING_CREDIT, Cause.DAMAGE),
    "overdue: pending": lambda o: Story([*placed(o, ANCIENT), half(o, ANCIENT, decided=False)], Finding.OVERDUE, Cause.PENDING),
    "overdue: not consumed": lambda o: Story(
        [*placed(o, ANCIENT), half(o), delivered(o, consumed=False)], Finding.OVERDUE, Cause.NOT_CONSUMED
    ),
    "overdue: pending without an order": lambda o: Story([half(o, ANCIENT, decided=False)], Finding.OVERDUE, Cause.PENDING),
    "order row lost": lambda o: Story(without(healthy(o), "order_rows"), Finding.CREDIT_WITHOUT_ORDER, Cause.ORDER_LOST),
    "credit of a rollback": lambda o: Story([half(o), credit(o)], Finding.CREDIT_WITHOUT_ORDER, Cause.ROLLED_BACK, [f"T-{o}"]),
    "credit invented": lambda o: Story([credit(o)], Finding.CREDIT_WITHOUT_ORDER, Cause.NO_MESSAGE),
    "message of a rollback": lambda o: Story(announced(o), Finding.MESSAGE_WITHOUT_ORDER, Cause.ROLLED_BACK, [f"T-{o}"]),
    "message invented": lambda o: Story(announced(o), Finding.MESSAGE_WITHOUT_ORDER, Cause.NO_TRANSACTION),
    "order row lost before its message": lambda o: Story([committed(o)], Finding.TRANSACTION_WITHOUT_ORDER, Cause.ORDER_LOST),
    "credited twice": lambda o: Story([*healthy(o), credit(o)], Finding.DOUBLE_CREDIT, Cause.ONE_MESSAGE),
    "credited twice by two messages": lambda o: Story(
        [*healthy(o), credit(o, transaction_id="other")], Finding.DOUBLE_CREDIT, Cause.SEVERAL_MESSAGES
    ),
    "cancelled, and not reversed": lambda o: Story(
        [*healthy(o), cancelled(o), cancellation(o)], Finding.MISSING_REVERSAL, Cause.CONSUMED
    ),
    "cancelled, and a dead letter": lambda o: Story(
        [*healthy(o), cancelled(o), cancellation(o), dead(o)], Finding.MISSING_REVERSAL, Cause.DEAD_LETTER
    ),
    "cancelled, and never announced": lambda o: Story([*healthy(o), cancelled(o)], Finding.MISSING_REVERSAL, Cause.NO_MESSAGE),
    "overdue: awaits its payment": lambda o: Story(
        [*unpaid(o, "AWAITING_PAYMENT", ANCIENT)], Finding.OVERDUE, Cause.AWAITING_PAYMENT
    ),
    "overdue: cancelling": lambda o: Story(
        [*healthy(o), cancelled(o, ANCIENT), cancellation(o, consumed=False)], Finding.OVERDUE, Cause.CANCELLING
    ),
    "expired, and credited": lambda o: Story(
        [*unpaid(o, "EXPIRED", rolled_back_rows=1), half(o), credit(o)], Finding.ROLLED_BACK_ORDER, Cause.MARKER
    ),
    "refused by the credit service, and not cancelled": lambda o: Story(
        [*placed(o), *announced(o), *refused(o)], Finding.REVERSED_ORDER
    ),
    "reversed though it stands": lambda o: Story([*healthy(o), reversal(o)], Finding.REVERSED_ORDER),
    "reversed without a credit": lambda o: Story([reversal(o)], Finding.REVERSAL_WITHOUT_CREDIT),
    "reversed by another amount": lambda o: Story([credit(o), reversal(o, reversal_cents=1251)], Finding.REVERSAL_MISMATCH),
    "reversed with the wrong sign": lambda o: Story([credit(o), reversal(o, reversal_points=12)], Finding.REVERSAL_MISMATCH),
    "reversed for another customer": lambda o: Story(
        [credit(o), reversal(o, last_credited_customer="bob")], Finding.REVERSAL_MISMATCH
    ),
    "credited another amount": lambda o: Story(_changed(healthy(o), "credit_cents", 1251), Finding.AMOUNT_MISMATCH, Cause.LEDGER),
    "order raised afterwards": lambda o: Story(
        [*placed(o, cents=9900, expected_points=99), *announced(o), credit(o)],
        Finding.AMOUNT_MISMATCH,
        Cause.ORDER_OR_MESSAGE,
    ),
    "three amounts": lambda o: Story(
        [*placed(o), *announced(o, message_cents=1), credit(o, credit_cents=2)], Finding.AMOUNT_MISMATCH, Cause.MESSAGE
    ),
    "points rounded up": lambda o: Story(_changed(healthy(o), "points", 13), Finding.POINTS_MISMATCH, Cause.LEDGER),
    "credited to another": lambda o: Story(
        _changed(healthy(o), "credited_customer", "bob"), Finding.WRONG_CUSTOMER, Cause.LEDGER
    ),
    "another's transaction id": lambda o: Story(
        [*placed(o), *announced(o), credit(o, transaction_id="T-of-another")], Finding.WRONG_TRANSACTION, Cause.LEDGER
    ),
    "two order rows": lambda o: Story([*healthy(o), order(o)], Finding.DUPLICATE_ORDER),
    "a marker for an order that stands": lambda o: Story(
        without(healthy(o), "committed_rows"), Finding.ROLLED_BACK_ORDER, Cause.MARKER, [f"T-{o}"]
    ),
    "a marker, and no credit": lambda o: Story([order(o), item(o), half(o)], Finding.ROLLED_BACK_ORDER, Cause.MARKER, [f"T-{o}"]),
    "transaction row lost": lambda o: Story(without(healthy(o), "committed_rows"), Finding.ORDER_WITHOUT_TRANSACTION),
    "an item too many": lambda o: Story([*healthy(o), item(o, 1)], Finding.ITEMS_MISMATCH),
    "items lost": lambda o: Story(without(healthy(o), "item_cents"), Finding.ITEMS_MISMATCH),
    "currency changed": lambda o: Story(_changed(healthy(o), "currency", "USD"), Finding.CURRENCY_MISMATCH),
    "amount in the body": lambda o: Story(
        [*placed(o), *announced(o, message_cents=1), credit(o)], Finding.MESSAGE_MISMATCH, Cause.AMOUNT
    ),
    "customer in the body": lambda o: Story(
        [*placed(o), *announced(o, message_customer="bob"), credit(o)], Finding.MESSAGE_MISMATCH, Cause.CUSTOMER
    ),
    "key of another order": lambda o: Story(
        [*placed(o), *announced(o, misnamed=1), credit(o)], Finding.MESSAGE_MISMATCH, Cause.NAME
    ),
    "transaction id of the message": lambda o: Story(
        [*placed(o), *announced(o, message_transaction_id="T-x"), credit(o)], Finding.MESSAGE_MISMATCH, Cause.TRANSACTION
    ),
    "delivered twice": lambda o: Story([*healthy(o), delivered(o)], Finding.DOUBLED_DELIVERY),
    "credited, never announced": lambda o: Story([*placed(o), credit(o)], Finding.ORDER_WITHOUT_MESSAGE, Cause.NO_MESSAGE),
    "credited, and rolled back": lambda o: Story(
        [*placed(o), half(o), credit(o)], Finding.ORDER_WITHOUT_MESSAGE, Cause.ROLLED_BACK
    ),
    "credited, and its message damaged": lambda o: Story(
        [*placed(o), half(o), damage(o), credit(o)], Finding.DAMAGED_MESSAGE, Cause.DAMAGE
    ),
    "a gap of the log": lambda o: Story([{"order_id": o, "gaps": 1}], Finding.LOG_GAP),
    "a damaged record": lambda o: Story([damage(o)], Finding.DAMAGED_MESSAGE, Cause.DAMAGE),
}
