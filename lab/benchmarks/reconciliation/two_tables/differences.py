"""The differences between the tables of orders and credits.

Computes the expected differences of the benchmark's data, and the differences that our reconciliation has found.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from lab.benchmarks.reconciliation.faults import UNCREDITED, Fault, injected
from pipelines.judging.classes import Finding
from pipelines.sources.databases.tables import Table

ORDERS: Final = Table("orders", "id", {"order_id": "string", "customer": "string", "total_cents": "bigint"})
CREDITS: Final = Table("credits", "id", {"order_id": "string", "customer": "string", "amount_cents": "bigint"})
"""The columns of the table of credits that are compared. Credits have no currency."""

_CREDITS_LEFT: Final = (Finding.CREDIT_WITHOUT_ORDER, Finding.DOUBLE_CREDIT)
_UNEQUAL: Final = (Finding.AMOUNT_MISMATCH, Finding.WRONG_CUSTOMER)


class Differences(msgspec.Struct, frozen=True):
    """The numbers of differences between the two tables."""

    orders_left: int
    """The number of orders without a credit."""
    credits_left: int
    """The number of credits without an order, including second credits of an order."""
    unequal: int
    """The number of orders whose credit has a different customer or amount."""


def in_books(orders: int) -> Differences:
    """Returns the differences between the two tables of `write_books` with `orders` orders."""
    count = injected(orders)
    return Differences(
        orders_left=sum(count[fault] for fault in UNCREDITED),
        credits_left=count[Fault.ORDER_ROW_LOST] + count[Fault.CREDITED_TWICE],
        unequal=count[Fault.OTHER_AMOUNT] + count[Fault.OTHER_CUSTOMER],
    )


def rows_in_books(orders: int) -> int:
    """Returns the total number of rows in the two tables of `write_books`."""
    count = injected(orders)
    uncredited = sum(count[fault] for fault in UNCREDITED)
    return 2 * orders - count[Fault.ORDER_ROW_LOST] - uncredited + count[Fault.CREDITED_TWICE]


def differences_in_findings(findings: Sequence[Mapping[str, Any]]) -> Differences:
    """Returns the differences in the findings of `reconcile --json`. A double credit counts as one credit without an order."""
    count = {found["finding"]: int(found["count"]) for found in findings}
    return Differences(
        orders_left=count.get(Finding.MISSING_CREDIT, 0),
        credits_left=sum(count.get(finding, 0) for finding in _CREDITS_LEFT),
        unequal=sum(count.get(finding, 0) for finding in _UNEQUAL),
    )
