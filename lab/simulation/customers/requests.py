"""Models customers' requests to the order service and its responses, without encoding them as HTTP."""

from dataclasses import dataclass

from order_service.domain.order import Item


@dataclass(frozen=True, slots=True)
class PlaceRequest:
    """The request that places an order: POST /orders."""

    customer: str
    items: tuple[Item, ...]
    key: str | None = None
    """The idempotency key."""
    is_paid_later: bool = False
    currency: str = "EUR"


@dataclass(frozen=True, slots=True)
class PayRequest:
    """The request that pays for an order: POST /orders/ID/payment."""

    order_id: str


@dataclass(frozen=True, slots=True)
class CancelRequest:
    """The request that cancels an order: POST /orders/ID/cancellation."""

    order_id: str
    reason: str = "by the customer"


ServiceRequest = PlaceRequest | PayRequest | CancelRequest


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """A response of the order service. Without a status, no response has arrived and the outcome is unknown."""

    status: int | None
    order_id: str | None = None
    order_state: str | None = None
    transaction_state: str | None = None
    is_replay: bool = False
    text: str = ""
    is_refused_connection: bool = False
    """True if no process listened at the address. The request did not arrive."""

    @property
    def may_change(self) -> bool:
        """True if a repeated request may soon get a different response: after 202, after 503, or if no response arrived."""
        return self.status in (None, 202, 500, 503)
