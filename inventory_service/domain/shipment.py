"""Shipments, and the rule that decides whether an order is short.

                 enough in stock            cancelled
    (created) ────────────────────> SHIPPED ──────────> RETURNED      the articles are back in stock
        │      stock too low
        └─────────────────────────> SHORT                             nothing is shipped; a shortage is reported
    (cancelled before it was created) ────────────────> CALLED_OFF    nothing is shipped

An order is shipped as a whole or not at all. Articles that are not tracked (a service, a download) are never short.
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
    """A quantity of one article in a shipment."""

    article: str
    quantity: int


@dataclass(frozen=True, slots=True)
class Instruction:
    """The instruction in a message about an order: to ship it, or to call it off."""

    order_id: str
    lines: tuple[ShipmentLine, ...] | None = None
    """The quantities to ship; None to call the order off."""

    @property
    def first_state(self) -> ShipmentState:
        """The state of the shipment after its first message. If the stock is too low, SHIPPED is then changed to SHORT."""
        return ShipmentState.CALLED_OFF if self.lines is None else ShipmentState.SHIPPED


@dataclass(frozen=True, slots=True)
class Shipment:
    """The shipment of an order."""

    order_id: str
    state: ShipmentState
    missing: str | None = None
    """The first article with too little in stock; None unless SHORT."""
    is_new: bool = field(default=False, compare=False)
    """True if the current message wrote this state, False if an earlier one did."""


def totals(lines: Iterable[ShipmentLine]) -> dict[str, int]:
    """Returns the total quantity of each article, in the order in which the articles first appear."""
    wanted: Counter[str] = Counter()
    for line in lines:
        wanted[line.article] += line.quantity
    return dict(wanted)


def first_missing(wanted: Mapping[str, int], stock: Mapping[str, int]) -> str | None:
    """Returns the first article with too little stock, or None if all articles can be shipped."""
    return next((article for article, quantity in wanted.items() if stock.get(article, quantity) < quantity), None)
