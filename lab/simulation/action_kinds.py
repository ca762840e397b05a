"""The kinds of customers' actions in the simulated world."""

from __future__ import annotations

from enum import StrEnum


class ActionKind(StrEnum):
    """A customer's action. `where` in a plan names the customer; parameter `order` is the number of the order in the plan.

    An action on an order without an answer first finds the order by its idempotency key.
    """

    PLACE = "order.place"
    """Places the order. `items` is a list of [name, quantity, price in cents]; `key` is an idempotency key or null.

    `tries` is the maximum number of requests while the outcome is unknown.
    """
    PLACE_AGAIN = "order.place_again"
    """Repeats the request that placed the order, with its idempotency key."""
    PAY = "order.pay"
    """Pays the order."""
    CANCEL = "order.cancel"
    """Cancels the order."""
