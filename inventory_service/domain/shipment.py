"""Shipments, and the rule that refuses one.

                 enough in stock            cancelled
    (created) ────────────────────> SHIPPED ──────────> RETURNED      the stock has the articles again
        │      too little
        └─────────────────────────> SHORT                             nothing is shipped; the order service is told
    (cancelled before it was created) ────────────────> CALLED_OFF    nothing is shipped

An order is shipped as a whole or not at all. Articles that the stock does not count (a service, a download) are never short.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ShipmentState(StrEnum):
    """The state of an order's shipment."""

    SHIPPED = "SHIPPED"
    SHORT = "SHORT"
    RETURNED = "RETURNED"
    CALLED_OFF = "CALLED_OFF"


@dataclass(frozen=True, slots=True)
class ShipmentLine:
    """A quantity of one article."""

    article: str
    quantity: int


@dataclass(frozen=True, slots=True)
class Shipment:
    """How far this service got with an order."""

    order_id: str
    state: ShipmentState
    missing: str | None = None
    """The first article of which there was too little."""
    is_new: bool = field(default=False, compare=False)
    """Whether this message wrote it; otherwise it existed before."""


def totals(lines: Iterable[ShipmentLine]) -> dict[str, int]:
    """Returns the quantity of each article over all lines, in their order."""
    wanted: Counter[str] = Counter()
    for line in lines:
        wanted[line.article] += line.quantity
    return dict(wanted)


def first_missing(wanted: Mapping[str, int], stock: Mapping[str, int]) -> str | None:
    """Returns the first article with too little counted stock; None if all can be shipped."""
    return next((article for article, quantity in wanted.items() if stock.get(article, quantity) < quantity), None)
