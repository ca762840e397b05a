"""The kinds of customers' actions in a simulation."""

from enum import StrEnum


class ActionKind(StrEnum):
    """A customer's action. `where` in a plan is the name of the customer.

    The parameter `order` is the number of the order in the plan.

    If the customer received no response to an order, a later action first finds this order by its idempotency key.
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
