"""The order service and the credit service of a session, built from their own parts on the page's event loop."""

from demo.play.services.credit_side import CreditSide
from demo.play.services.order_side import OrderSide
from demo.play.services.side import CREDIT_SERVICE, ORDER_SERVICE, DrawnStep, Row, SessionEvent, Surroundings, Tables

__all__ = [
    "CREDIT_SERVICE",
    "ORDER_SERVICE",
    "CreditSide",
    "DrawnStep",
    "OrderSide",
    "Row",
    "SessionEvent",
    "Surroundings",
    "Tables",
]
