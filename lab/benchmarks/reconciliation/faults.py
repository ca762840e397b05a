"""The faults in the benchmark's data, with the expected finding of each fault.

Each kind of fault affects one order in a thousand.
"""

from enum import StrEnum
from typing import Final

from pipelines.judging.classes import Cause, Finding

ONE_IN: Final = 1_000


class Fault(StrEnum):
    """A kind of fault that affects an order."""

    CREDIT_LOST = "credit lost"
    DEAD_LETTER = "dead letter"
    DISCARDED = "discarded"
    COMMIT_LOST = "decided, and not delivered"
    NEVER_ANNOUNCED = "never announced"
    ORDER_ROW_LOST = "order row lost"
    CREDITED_TWICE = "credited twice"
    OTHER_AMOUNT = "credited another amount"
    POINTS = "points rounded up"
    OTHER_CUSTOMER = "credited to another"
    OTHER_TRANSACTION = "credit with another's transaction id"
    TRANSACTION_ROW_LOST = "transaction row lost"
    MARKER = "marker for an order that stands"
    ITEMS = "item changed"
    CURRENCY = "currency changed"
    BODY = "amount in the body"
    DELIVERED_TWICE = "delivered twice"
    DAMAGED = "byte flipped in the message"
    PENDING = "pending"
    STATE = "cancelled by its row alone"
    RENAMED = "item renamed"
    UNREADABLE = "amount in the body as text"
    FUTURE = "credited in ten years"


EXPECTED: Final = {
    Fault.CREDIT_LOST: (Finding.MISSING_CREDIT, Cause.CONSUMED),
    Fault.DEAD_LETTER: (Finding.MISSING_CREDIT, Cause.DEAD_LETTER),
    Fault.DISCARDED: (Finding.MISSING_CREDIT, Cause.DISCARDED),
    Fault.COMMIT_LOST: (Finding.MISSING_CREDIT, Cause.ROLLED_BACK),
    Fault.NEVER_ANNOUNCED: (Finding.MISSING_CREDIT, Cause.NO_MESSAGE),
    Fault.ORDER_ROW_LOST: (Finding.CREDIT_WITHOUT_ORDER, Cause.ORDER_LOST),
    Fault.CREDITED_TWICE: (Finding.DOUBLE_CREDIT, Cause.ONE_MESSAGE),
    Fault.OTHER_AMOUNT: (Finding.AMOUNT_MISMATCH, Cause.LEDGER),
    Fault.POINTS: (Finding.POINTS_MISMATCH, Cause.LEDGER),
    Fault.OTHER_CUSTOMER: (Finding.WRONG_CUSTOMER, Cause.LEDGER),
    Fault.OTHER_TRANSACTION: (Finding.WRONG_TRANSACTION, Cause.LEDGER),
    Fault.TRANSACTION_ROW_LOST: (Finding.ORDER_WITHOUT_TRANSACTION, None),
    Fault.MARKER: (Finding.ROLLED_BACK_ORDER, Cause.MARKER),
    Fault.ITEMS: (Finding.ITEMS_MISMATCH, None),
    Fault.CURRENCY: (Finding.CURRENCY_MISMATCH, None),
    Fault.BODY: (Finding.MESSAGE_MISMATCH, Cause.AMOUNT),
    Fault.DELIVERED_TWICE: (Finding.DOUBLED_DELIVERY, None),
    Fault.DAMAGED: (Finding.DAMAGED_MESSAGE, Cause.DAMAGE),
    Fault.PENDING: (Finding.IN_FLIGHT, Cause.PENDING),
    Fault.STATE: (Finding.STATE_MISMATCH, Cause.CREDITED),
    Fault.RENAMED: (Finding.ITEMS_MISMATCH, Cause.ITEMS),
    Fault.UNREADABLE: (Finding.MESSAGE_MISMATCH, Cause.BODY),
    Fault.FUTURE: (Finding.WRONG_TIME, Cause.FUTURE),
}
UNCREDITED: Final = frozenset(
    {Fault.CREDIT_LOST, Fault.DEAD_LETTER, Fault.DISCARDED, Fault.COMMIT_LOST, Fault.NEVER_ANNOUNCED, Fault.PENDING}
)
"""Faults that leave an order without a credit."""

_FAULTS: Final = tuple(Fault)


def fault_of(number: int) -> Fault | None:
    """Returns the fault of the order with this number, or None."""
    place = number % ONE_IN
    return _FAULTS[place] if place < len(_FAULTS) else None


def injected(orders: int) -> dict[Fault, int]:
    """Returns the number of orders with each fault, among `orders` orders."""
    whole, rest = divmod(orders, ONE_IN)
    return {fault: whole + (place < rest) for place, fault in enumerate(_FAULTS)}
