"""The kinds of customers' actions in the simulated world, each with what it does."""

from __future__ import annotations

from enum import StrEnum


class ActionKind(StrEnum):
    """A customer's action. `where` in a plan names the customer; parameter `order` is the number of the order in the plan.

    An action on an order whose placing was not answered asks for the order by the idempotency key of the placing first.
    """

    PLACE = "order.place"
    """Places the order: `items` is a list of [name, quantity, price in cents]; `key` an idempotency key or null; `pays_later`.

    `tries` says how often the customer asks at most while nobody knows the answer; often if it is not given.
    """
    PLACE_AGAIN = "order.place_again"
    """Repeats the request of the order's placing, with its idempotency key."""
    PAY = "order.pay"
    """Pays the order."""
    CANCEL = "order.cancel"
    """Cancels the order."""
