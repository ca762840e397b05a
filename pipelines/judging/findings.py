"""What a reconciliation can find out about an order, a credit or a message."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Finding(StrEnum):
    """The classes of finding. An order with its credits is in exactly one of those before ORDER_WITHOUT_MESSAGE."""

    MATCHED = "matched"
    IN_FLIGHT = "in_flight"
    MISSING_CREDIT = "missing_credit"
    CREDIT_WITHOUT_ORDER = "credit_without_order"
    DOUBLE_CREDIT = "double_credit"
    AMOUNT_MISMATCH = "amount_mismatch"
    POINTS_MISMATCH = "points_mismatch"
    WRONG_CUSTOMER = "wrong_customer"
    ROLLED_BACK_ORDER = "rolled_back_order"

    ORDER_WITHOUT_MESSAGE = "order_without_message"
    MESSAGE_WITHOUT_ORDER = "message_without_order"
    HALF_MESSAGE_PENDING = "half_message_pending"
    DOUBLED_DELIVERY = "doubled_delivery"


MEANINGS: Final = {
    Finding.MATCHED: "one order, one credit, all equal",
    Finding.IN_FLIGHT: "younger than the grace period, not judged",
    Finding.MISSING_CREDIT: "an order without a credit, although its transaction is COMMITTED",
    Finding.CREDIT_WITHOUT_ORDER: "a credit whose order does not exist or was rolled back",
    Finding.DOUBLE_CREDIT: "an order that was credited more than once",
    Finding.AMOUNT_MISMATCH: "credit and order name different amounts",
    Finding.POINTS_MISMATCH: "not one point for each full unit of currency",
    Finding.WRONG_CUSTOMER: "the credit went to another customer",
    Finding.ROLLED_BACK_ORDER: "an order row although its transaction is ROLLED_BACK",
    Finding.ORDER_WITHOUT_MESSAGE: "a COMMITTED order whose message was not delivered and is not pending",
    Finding.MESSAGE_WITHOUT_ORDER: "a delivered message whose order does not exist or was rolled back",
    Finding.HALF_MESSAGE_PENDING: "a half message that is undecided after the grace period",
    Finding.DOUBLED_DELIVERY: "a transaction whose message was delivered more than once",
}

CONSISTENT: Final = frozenset({Finding.MATCHED, Finding.IN_FLIGHT})
ABOUT_ORDERS: Final = tuple(Finding)[: list(Finding).index(Finding.ORDER_WITHOUT_MESSAGE)]
ABOUT_MESSAGES: Final = tuple(Finding)[len(ABOUT_ORDERS) :]


@dataclass(frozen=True, slots=True)
class FindingTotal:
    """How often something was found, and what it adds up to."""

    finding: Finding
    count: int
    order_cents: int
    credit_cents: int
    sample_order_ids: tuple[str, ...] = ()
    order_count: int = 0
    """How many of what was found have an order."""
    credit_count: int = 0
    """How many credits they have together."""

    @property
    def is_inconsistent(self) -> bool:
        """Whether this alone makes the books wrong."""
        return self.count > 0 and self.finding not in CONSISTENT


def is_consistent(totals: list[FindingTotal]) -> bool:
    """Whether nothing was found that is wrong."""
    return not any(total.is_inconsistent for total in totals)
