"""Stories of orders as events: a healthy order, an order in progress, and each fault that must be found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pipelines.judging.classes import Cause, Finding
from pipelines.judging.cut_off import CutOff

CUT_OFF = CutOff(as_of_ms=100_000_000, grace_seconds=100, overdue_seconds=10_000)
OLD = CUT_OFF.judged_until_ms
YOUNG = OLD + 1
FUTURE = CUT_OFF.impossible_from_ms + 1
ANCIENT = CUT_OFF.overdue_until_ms

Event = dict[str, object]


@dataclass(frozen=True)
class Story:
    """Events and the expected finding. `markers` are transactions with a ROLLED_BACK marker."""

    events: list[Event]
    finding: Finding
    cause: Cause | None = None
    markers: list[str] = field(default_factory=list)


def order(order_id: str, at: int = OLD, cents: int = 1250, **more: object) -> Event:
    said = {"order_rows": 1, "customer": "ada", "order_cents": cents, "currency": "EUR", "expected_points": cents // 100}
    return {"order_id": order_id, "order_state": "PLACED", "ordered_at_ms": at, "latest_at_ms": at, **said, **more}


def item(order_id: str, cents: int = 1250) -> Event:
    return {"order_id": order_id, "item_cents": cents, "item_mark": cents + 7}


def committed(order_id: str, at: int = OLD) -> Event:
    said: Event = {"committed_rows": 1, "transaction_id": f"T-{order_id}", "decided_at_ms": at, "latest_at_ms": at}
    return {"order_id": order_id, **said}


def placed(order_id: str, at: int = OLD, **more: object) -> list[Event]:
    """Returns the rows that the local transaction writes."""
    return [order(order_id, at, **more), item(order_id, 1000), item(order_id, 250), committed(order_id, at)]


def half(order_id: str, at: int = OLD, *, decided: bool = True) -> Event:
    return {
        "order_id": order_id, "halves": 1, "half_at_ms": at, "last_half_at_ms": at, "half_transaction_id": f"T-{order_id}",
        "last_decided_half_at_ms": at if decided else None, "latest_at_ms": at,
    }  # fmt: skip


def delivered(order_id: str, at: int = OLD, *, consumed: bool | None = True, born: int = OLD, **more: object) -> Event:
    known = {} if consumed is None else {"consumed" if consumed else "unconsumed": 1}
    said = {
        "message_transaction_id": f"T-{order_id}", "message_cents": 1250, "message_currency": "EUR", "message_customer": "ada",
        "message_items": 1264, "message_placed_at_ms": at, **more,
    }  # fmt: skip
    return {
        "order_id": order_id, "deliveries": 1, "commits": 1, "delivered_at_ms": at, "last_delivered_at_ms": at,
        "born_at_ms": born, "last_born_at_ms": born, "latest_at_ms": at, **known, **said,
        **{f"last_{name}": value for name, value in said.items() if name.startswith("message_")},
    }  # fmt: skip


def credit(order_id: str, at: int = OLD, transaction_id: str | None = None, **more: object) -> Event:
    transaction = transaction_id or f"T-{order_id}"
    said = {"credit_rows": 1, "credit_cents": 1250, "points": 12, "credited_customer": "ada", "credited_at_ms": at}
    named = {"credit_transaction_id": transaction, "last_credit_transaction_id": transaction, "credit_message_id": transaction}
    told = {"order_id": order_id, "latest_at_ms": at, **said, **named, **more}
    return {**told, "last_credited_customer": told["credited_customer"]}


def reversal(order_id: str, at: int = OLD, **more: object) -> Event:
    """Returns a reversal as a repair writes it."""
    said = {"reversal_rows": 1, "reversal_cents": 1250, "reversal_points": -12, "credited_at_ms": at, "reversed_at_ms": at}
    named = {"credited_customer": "ada", "last_credited_customer": "ada", "reversal_message_id": "repair 1"}
    return {"order_id": order_id, "latest_at_ms": at, **said, **named, **more}


def taken_back(order_id: str, at: int = OLD, **more: object) -> Event:
    """Returns the reversal that the cancellation message causes."""
    return reversal(order_id, at, **{"reversal_message_id": f"C-{order_id}", "reversal_transaction_id": f"C-{order_id}", **more})


def refused(order_id: str, at: int = OLD) -> list[Event]:
    """Returns a credit and a reversal of 0 points, with which the credit service settles an order that cannot be credited."""
    by = f"refused T-{order_id}"
    return [
        credit(order_id, at, credit_cents=0, points=0, credit_message_id=by),
        reversal(order_id, at, reversal_cents=0, reversal_points=0, reversal_message_id=by),
    ]


def cancelled(order_id: str, at: int = OLD) -> Event:
    """Returns the cancellation's row and the changed row of the order."""
    said: Event = {"cancelled_rows": 1, "cancellation_transaction_id": f"C-{order_id}", "cancelled_at_ms": at}
    return {"order_id": order_id, "order_state": "CANCELLED", "ended_at_ms": at, "latest_at_ms": at, **said}


def cancellation(order_id: str, at: int = OLD, *, consumed: bool = True, **more: object) -> Event:
    named: Event = {
        "cancel_cents": 1250, "cancel_currency": "EUR", "cancel_customer": "ada", "cancel_ended_at_ms": at,
        "cancel_message_id": f"C-{order_id}", "cancel_born_at_ms": at, **more,
    }  # fmt: skip
    counted: Event = {
        "cancel_halves": 1, "cancel_deliveries": 1, "cancel_commits": 1, "unconsumed_cancellations": None if consumed else 1,
    }  # fmt: skip
    times: Event = {"last_cancel_half_at_ms": at, "last_decided_cancel_half_at_ms": at, "cancel_delivered_at_ms": at}
    said = {**named, **{f"last_{name}": value for name, value in named.items() if name.startswith("cancel_")}}
    return {"order_id": order_id, "latest_at_ms": at, **counted, **times, **said}


def unpaid(order_id: str, state: str, at: int = OLD, **more: object) -> list[Event]:
    """Returns an order with a later payment, before its transaction is COMMITTED."""
    times: Event = {"pay_until_ms": at, "ended_at_ms": None if state == "AWAITING_PAYMENT" else at + 9}
    row: Event = {"order_id": order_id, "decided_at_ms": at, "pending_rows": 1 if state == "AWAITING_PAYMENT" else None}
    times |= {name: value for name, value in more.items() if name in times}
    return [order(order_id, at, **{"order_state": state, **times}), item(order_id), {**more, **row}]


def paid(order_id: str, at: int = OLD, placed_at: int = OLD, **more: object) -> list[Event]:
    """Returns the order database's rows of an order that was paid later."""
    times: Event = {"pay_until_ms": at + 5, "paid_at_ms": at, "latest_at_ms": at}
    row = order(order_id, placed_at, **{"order_state": "PAID", **times, **more})
    return [row, item(order_id, 1000), item(order_id, 250), committed(order_id, placed_at)]


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


def stored(order_id: str, column: str = "waiting_credits", at: int = OLD) -> Event:
    """Returns a message in the credit service's inbox. `column` combines its status and kind."""
    return {"order_id": order_id, column: 1, "received_at_ms": at, "latest_at_ms": at, "last_error": "Error: no"}


def dismissed(order_id: str, kind: str = "credits") -> Event:
    """Returns a message in the inbox that a person dismissed."""
    return {"order_id": order_id, f"dismissed_{kind}": 1, "last_error": "Error: no"}


def announced(order_id: str, **more: object) -> list[Event]:
    return [half(order_id), delivered(order_id, **more)]


def healthy(order_id: str) -> list[Event]:
    return [*placed(order_id), *announced(order_id), credit(order_id)]


def without(events: Iterable[Event], column: str) -> list[Event]:
    """Returns the events that have no value in this column."""
    return [event for event in events if event.get(column) is None]


def _changed(events: Iterable[Event], column: str, value: object) -> list[Event]:
    return [{**event, column: value} if event.get(column) is not None else event for event in events]


def _placed_at(at: int, *events: Event) -> list[Event]:
    """Returns the events, with the time of the order in their messages."""
    said = {"message_placed_at_ms": at, "last_message_placed_at_ms": at}
    return [{**event, **said} if event.get("deliveries") else event for event in events]


Telling = Callable[[str], Story]

HEALTHY: dict[str, Telling] = {
    "credited": lambda o: Story(healthy(o), Finding.MATCHED),
    "credited, and young": lambda o: Story(
        [*placed(o, YOUNG), half(o, YOUNG), delivered(o, YOUNG), credit(o, YOUNG)], Finding.MATCHED
    ),
    "credited; a dead letter before that": lambda o: Story(
        [*healthy(o), delayed(o, 1), retried(o, 2), dead(o, 3), retried(o, 4)], Finding.MATCHED
    ),
    "credited; sent twice after a time-out": lambda o: Story(
        [*healthy(o), half(o), delivered(o, born=OLD - 5_000)], Finding.MATCHED
    ),
    "credited; discarded and resumed": lambda o: Story(
        [
            *placed(o, OLD - 9),
            half(o, OLD - 8, decided=False),
            discarded(o, OLD - 7),
            half(o, OLD - 6),
            delivered(o, OLD - 5, message_placed_at_ms=OLD - 9),
            credit(o),
        ],
        Finding.MATCHED,
    ),
    "credited, and its items not read": lambda o: Story(
        without([*placed(o, YOUNG), half(o, YOUNG), delivered(o, YOUNG), credit(o, YOUNG)], "item_cents"), Finding.MATCHED
    ),
    "rolled back": lambda o: Story([half(o)], Finding.ROLLED_BACK, None, [f"T-{o}"]),
    "rolled back without a marker": lambda o: Story([half(o)], Finding.ROLLED_BACK),
    "cancelled": lambda o: Story([*healthy(o), cancelled(o), cancellation(o), taken_back(o)], Finding.REVERSED),
    "cancelled, and reversed by a repair": lambda o: Story(
        [*healthy(o), cancelled(o), reversal(o)], Finding.REVERSED, Cause.REPAIRED
    ),
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
    "credit invented, and reversed": lambda o: Story([credit(o), reversal(o)], Finding.REVERSED, Cause.REPAIRED),
    "credit of a rollback, reversed": lambda o: Story(
        [*announced(o), credit(o), reversal(o)], Finding.REVERSED, Cause.REPAIRED, [f"T-{o}"]
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
    "a dead letter that is retried": lambda o: Story(
        [*placed(o), *announced(o), dead(o, OLD - 1), retried(o, consumed=False)], Finding.IN_FLIGHT, Cause.REDELIVERING
    ),
    "paid three days after it was placed": lambda o: Story(
        [*paid(o, OLD, ANCIENT - 9), half(o, ANCIENT), *_placed_at(ANCIENT - 9, delivered(o), credit(o))], Finding.MATCHED
    ),
    "paid a moment ago, three days after it was placed": lambda o: Story(
        [*paid(o, YOUNG, ANCIENT - 9), half(o, ANCIENT, decided=False)], Finding.IN_FLIGHT, Cause.PENDING
    ),
    "paid and delivered a moment ago": lambda o: Story(
        [*paid(o, YOUNG, ANCIENT - 9), half(o, ANCIENT), *_placed_at(ANCIENT - 9, delivered(o, YOUNG, consumed=False))],
        Finding.IN_FLIGHT,
        Cause.NOT_CONSUMED,
    ),
    "awaits its payment, whose deadline is days away": lambda o: Story(
        [*unpaid(o, "AWAITING_PAYMENT", ANCIENT, pay_until_ms=OLD), half(o, ANCIENT, decided=False)],
        Finding.IN_FLIGHT,
        Cause.PENDING,
    ),
    "refused by the credit service a moment ago": lambda o: Story(
        [*placed(o), *announced(o), *refused(o, YOUNG)], Finding.IN_FLIGHT, Cause.CANCELLING
    ),
    "waits in the inbox": lambda o: Story([*placed(o), *announced(o), stored(o)], Finding.IN_FLIGHT, Cause.WAITING),
    "waits in the inbox, and its half message and its message have expired": lambda o: Story(
        [*placed(o), stored(o)], Finding.IN_FLIGHT, Cause.WAITING
    ),
    "waits in the inbox beside a dead letter": lambda o: Story(
        [*placed(o), *announced(o), dead(o), stored(o)], Finding.IN_FLIGHT, Cause.WAITING
    ),
    "parked and stored again": lambda o: Story(
        [*placed(o), *announced(o), stored(o, "parked_credits"), stored(o)], Finding.IN_FLIGHT, Cause.WAITING
    ),
    "parked a moment after it was placed": lambda o: Story(
        [*placed(o, YOUNG), half(o, YOUNG), delivered(o, YOUNG), stored(o, "parked_credits", YOUNG)],
        Finding.IN_FLIGHT,
        Cause.PARKED,
    ),
    "parked, and on its way again": lambda o: Story(
        [*placed(o), *announced(o), delayed(o), stored(o, "parked_credits")], Finding.IN_FLIGHT, Cause.REDELIVERING
    ),
    "credited, and redelivered into the inbox": lambda o: Story([*healthy(o), stored(o, at=YOUNG)], Finding.MATCHED),
    "credited a moment after the inbox was read": lambda o: Story(
        [*placed(o), *announced(o), credit(o, YOUNG), stored(o)], Finding.MATCHED
    ),
    "credited, and its redelivery waits for long": lambda o: Story([*healthy(o), stored(o)], Finding.IN_FLIGHT, Cause.WAITING),
    "credited, and a copy was dismissed": lambda o: Story([*healthy(o), dismissed(o)], Finding.MATCHED),
    "cancelled, and the cancellation waits in the inbox": lambda o: Story(
        [*healthy(o), cancelled(o), cancellation(o), stored(o, "waiting_reversals")], Finding.IN_FLIGHT, Cause.WAITING
    ),
    "cancelled and reversed, and the cancellation redelivered into the inbox": lambda o: Story(
        [*healthy(o), cancelled(o), cancellation(o), taken_back(o), stored(o, "waiting_reversals", YOUNG)], Finding.REVERSED
    ),
    "cancelled and reversed, and a redelivery waits for long": lambda o: Story(
        [*healthy(o), cancelled(o), cancellation(o), taken_back(o), stored(o, "waiting_reversals")],
        Finding.IN_FLIGHT,
        Cause.WAITING,
    ),
    "cancelled, reversed, and its credit waits in the inbox": lambda o: Story(
        [*placed(o), *announced(o), cancelled(o), cancellation(o), taken_back(o), stored(o)], Finding.IN_FLIGHT, Cause.WAITING
    ),
    "refused by the credit service, and the refusal is not sent yet": lambda o: Story(
        [*placed(o), *announced(o), *refused(o), stored(o, "waiting_refusals")], Finding.IN_FLIGHT, Cause.WAITING
    ),
    "a message in the inbox, and its order not read": lambda o: Story([stored(o, at=YOUNG)], Finding.IN_FLIGHT, Cause.WAITING),
    "announced in the first version, without items": lambda o: Story(
        [*placed(o), *announced(o, message_items=None), credit(o)], Finding.MATCHED
    ),
    "delivered a moment ago": lambda o: Story(
        [*placed(o), half(o), delivered(o, YOUNG, consumed=None, message_placed_at_ms=OLD)], Finding.IN_FLIGHT, Cause.YOUNG
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
    "cancelled, says its row alone": lambda o: Story(
        _changed(healthy(o), "order_state", "CANCELLED"), Finding.STATE_MISMATCH, Cause.CREDITED
    ),
    "awaits its payment, says its row, and is credited": lambda o: Story(
        _changed(healthy(o), "order_state", "AWAITING_PAYMENT"), Finding.STATE_MISMATCH, Cause.CREDITED
    ),
    "a state that no service knows": lambda o: Story(
        _changed(healthy(o), "order_state", "SHIPPED"), Finding.STATE_MISMATCH, Cause.STATE
    ),
    "its cancellation was announced, and it stands": lambda o: Story(
        [*healthy(o), cancellation(o)], Finding.STATE_MISMATCH, Cause.STANDS
    ),
    "paid, and no payment": lambda o: Story(_changed(healthy(o), "order_state", "PAID"), Finding.STATE_MISMATCH, Cause.ROWS),
    "two COMMITTED rows": lambda o: Story([*healthy(o), committed(o)], Finding.DUPLICATE_TRANSACTION),
    "an entry of an unknown kind": lambda o: Story([*healthy(o), {"order_id": o, "unknown_rows": 1}], Finding.UNKNOWN_ROW),
    "credited in the future": lambda o: Story([*placed(o), *announced(o), credit(o, FUTURE)], Finding.WRONG_TIME, Cause.FUTURE),
    "pending since the future": lambda o: Story([*placed(o), half(o, FUTURE, decided=False)], Finding.WRONG_TIME, Cause.FUTURE),
    "expired in the future": lambda o: Story(
        [*unpaid(o, "EXPIRED", rolled_back_rows=1), {"order_id": o, "latest_at_ms": FUTURE}], Finding.WRONG_TIME, Cause.FUTURE
    ),
    "placed in the future, and consumed": lambda o: Story(
        [*placed(o, FUTURE), *announced(o)], Finding.MISSING_CREDIT, Cause.CONSUMED
    ),
    "placed a moment ago, and delivered long ago": lambda o: Story(
        [*placed(o, YOUNG), *announced(o)], Finding.MISSING_CREDIT, Cause.CONSUMED
    ),
    "credited before it was placed": lambda o: Story(
        [*placed(o), *announced(o), credit(o, OLD - 100_001)], Finding.WRONG_TIME, Cause.TOO_EARLY
    ),
    "credited while its half message is pending": lambda o: Story(
        [*placed(o), half(o, decided=False), credit(o)], Finding.ORDER_WITHOUT_MESSAGE, Cause.PENDING
    ),
    "a body that nobody can read": lambda o: Story(
        [*placed(o), *announced(o, unreadable=1, message_cents=None), credit(o)], Finding.MESSAGE_MISMATCH, Cause.BODY
    ),
    "a second message with a larger amount": lambda o: Story(
        [*healthy(o), half(o), delivered(o, born=1, message_cents=9999)], Finding.MESSAGE_MISMATCH, Cause.AMOUNT
    ),
    "a message that says another time": lambda o: Story(
        [*placed(o), *announced(o, message_placed_at_ms=OLD - 1), credit(o)], Finding.MESSAGE_MISMATCH, Cause.TIME
    ),
    "items renamed": lambda o: Story(
        [*placed(o), *announced(o, message_items=1), credit(o)], Finding.ITEMS_MISMATCH, Cause.ITEMS
    ),
    "a credit without a transaction id": lambda o: Story(
        _changed(healthy(o), "credit_transaction_id", None), Finding.WRONG_TRANSACTION, Cause.LEDGER
    ),
    "a credit of another order's message": lambda o: Story(
        _changed(healthy(o), "credit_message_id", "T-x"), Finding.WRONG_TRANSACTION, Cause.OTHER_MESSAGE
    ),
    "everything below zero": lambda o: Story(
        [*placed(o, cents=-1200), *announced(o, message_cents=-1200), credit(o, credit_cents=-1200, points=-12)],
        Finding.AMOUNT_MISMATCH,
        Cause.BELOW_ZERO,
    ),
    "reversed by the message of something else": lambda o: Story(
        [*healthy(o), cancelled(o), cancellation(o), taken_back(o, reversal_transaction_id="C-x")],
        Finding.REVERSAL_MISMATCH,
        Cause.UNASKED,
    ),
    "reversed, and the cancellation never announced": lambda o: Story(
        [*healthy(o), cancelled(o), taken_back(o)], Finding.REVERSAL_MISMATCH, Cause.NO_MESSAGE
    ),
    "cancelled and reversed, and the order row lost": lambda o: Story(
        [
            *without([*healthy(o), taken_back(o), cancellation(o)], "order_rows"),
            {"order_id": o, "cancelled_rows": 1, "cancellation_transaction_id": f"C-{o}", "cancelled_at_ms": OLD},
        ],
        Finding.TRANSACTION_WITHOUT_ORDER,
        Cause.ORDER_LOST,
    ),
    "parked in the inbox": lambda o: Story(
        [*placed(o), *announced(o), stored(o, "parked_credits")], Finding.MISSING_CREDIT, Cause.PARKED
    ),
    "parked in the inbox, and a dead letter before that": lambda o: Story(
        [*placed(o), *announced(o), dead(o), stored(o, "parked_credits")], Finding.MISSING_CREDIT, Cause.PARKED
    ),
    "dismissed in the inbox": lambda o: Story([*placed(o), *announced(o), dismissed(o)], Finding.MISSING_CREDIT, Cause.DISMISSED),
    "overdue: waits in the inbox": lambda o: Story(
        [*placed(o, ANCIENT), half(o, ANCIENT), *_placed_at(ANCIENT, delivered(o)), stored(o)], Finding.OVERDUE, Cause.WAITING
    ),
    "overdue: credited, and its redelivery waits": lambda o: Story(
        [*placed(o, ANCIENT), half(o), *_placed_at(ANCIENT, delivered(o)), credit(o, ANCIENT), stored(o, at=ANCIENT)],
        Finding.OVERDUE,
        Cause.WAITING,
    ),
    "credited, and a message parked that contradicts the credit": lambda o: Story(
        [*healthy(o), stored(o, "parked_credits")], Finding.MESSAGE_MISMATCH, Cause.PARKED
    ),
    "cancelled, and the cancellation parked": lambda o: Story(
        [*healthy(o), cancelled(o), cancellation(o), stored(o, "parked_reversals")], Finding.MISSING_REVERSAL, Cause.PARKED
    ),
    "cancelled, and the cancellation dismissed": lambda o: Story(
        [*healthy(o), cancelled(o), cancellation(o), dismissed(o, "reversals")], Finding.MISSING_REVERSAL, Cause.DISMISSED
    ),
    "cancelled and reversed, and its credit parked": lambda o: Story(
        [*placed(o), *announced(o), cancelled(o), cancellation(o), taken_back(o), stored(o, "parked_credits")],
        Finding.REVERSAL_WITHOUT_CREDIT,
        Cause.PARKED,
    ),
    "refused by the credit service, and the refusal parked": lambda o: Story(
        [*placed(o), *announced(o), *refused(o), stored(o, "parked_refusals")], Finding.REVERSED_ORDER, Cause.PARKED
    ),
    "a message in the inbox, and no order": lambda o: Story([stored(o)], Finding.MESSAGE_WITHOUT_ORDER, Cause.NO_MESSAGE),
    "a parked message, and its order row lost": lambda o: Story(
        [committed(o), stored(o, "parked_credits")], Finding.MESSAGE_WITHOUT_ORDER, Cause.ORDER_LOST
    ),
    "expired, and its message waits in the inbox": lambda o: Story(
        [*unpaid(o, "EXPIRED", rolled_back_rows=1), half(o), stored(o)], Finding.ROLLED_BACK_ORDER, Cause.MARKER
    ),
    "its cancellation waits in the inbox, and it stands": lambda o: Story(
        [*healthy(o), stored(o, "waiting_reversals")], Finding.STATE_MISMATCH, Cause.STANDS
    ),
    "stored in the inbox in the future": lambda o: Story(
        [*placed(o), *announced(o), stored(o, at=FUTURE)], Finding.WRONG_TIME, Cause.FUTURE
    ),
    "stored in the inbox before it was placed": lambda o: Story(
        [*placed(o), *announced(o), stored(o, at=OLD - 100_001)], Finding.WRONG_TIME, Cause.TOO_EARLY
    ),
    "a row of the inbox in an unknown status": lambda o: Story(
        [*healthy(o), {"order_id": o, "unknown_rows": 1, "received_at_ms": OLD}], Finding.UNKNOWN_ROW
    ),
    "a gap of the log": lambda o: Story([{"order_id": o, "gaps": 1}], Finding.LOG_GAP),
    "a damaged record": lambda o: Story([damage(o)], Finding.DAMAGED_MESSAGE, Cause.DAMAGE),
}
