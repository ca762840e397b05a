"""The schemas of HTTP requests and responses, and the description of the routes for /docs and /openapi.json.

Requests are validated strictly: "3" is not accepted as a quantity.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.config import JsonDict

from order_messages.states import MAX_CUSTOMER_LENGTH, OrderState, TransactionKind, TransactionState
from order_service.domain.order import MAX_REASON_LENGTH, Order, OrderTransaction
from order_service.service_layer.attempt import Outcome
from order_service.service_layer.cancelling import Cancelled
from order_service.service_layer.placing import Placed
from rocketmq_broker import __version__
from service_runtime.http.api_document import ApiDescription, Described
from service_runtime.text import NO_CONTROL_CHARACTERS, rfc3339, rfc3339_or_none

_Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True), NO_CONTROL_CHARACTERS]
Customer = Annotated[_Text, StringConstraints(max_length=MAX_CUSTOMER_LENGTH)]
_IdempotencyKey = Annotated[str, StringConstraints(pattern="^[!-~]{1,255}$")]

_STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)
_ORDER_OF_ADA: Final[JsonDict] = {"customer": "ada", "items": [{"name": "book", "quantity": 1, "price_cents": 2599}]}


class ItemRequest(BaseModel):
    """One line of the requested order."""

    model_config = _STRICT

    name: Annotated[_Text, StringConstraints(max_length=200)]
    quantity: int = Field(ge=1, le=10_000)
    price_cents: int = Field(ge=1, le=100_000_000, description="price of one piece, in cents of the currency")


class OrderRequest(BaseModel):
    """The body of POST /orders."""

    model_config = ConfigDict(**_STRICT, json_schema_extra={"examples": [_ORDER_OF_ADA]})

    customer: Customer
    items: list[ItemRequest] = Field(min_length=1, max_length=100)
    currency: Annotated[str, StringConstraints(pattern="^[A-Z]{3}$")] = Field("EUR", description="ISO 4217 currency code")
    payment: Literal["now", "later"] = Field("now", description="later: the order waits for POST /orders/{order_id}/payment")


class PaymentRequest(BaseModel):
    """The body of POST /orders/{order_id}/payment, an empty JSON object."""

    model_config = _STRICT


class CancellationRequest(BaseModel):
    """The body of POST /orders/{order_id}/cancellation."""

    model_config = ConfigDict(**_STRICT, json_schema_extra={"examples": [{"reason": "by the customer"}]})

    reason: Annotated[_Text, StringConstraints(max_length=MAX_REASON_LENGTH)] = "by the customer"


class OrderHeaders(BaseModel):
    """The headers of POST /orders that the service uses."""

    idempotency_key: _IdempotencyKey | None = Field(None, alias="Idempotency-Key")


class OrderResponse(BaseModel):
    """An order in a response."""

    order_id: str
    customer: str
    items: list[ItemRequest]
    total_cents: int
    currency: str
    state: OrderState
    created_at: str = Field(description="RFC 3339, like the other times")
    created_at_ms: int
    pay_until: str | None = Field(None, description="the payment deadline of an order that is to be paid later")
    paid_at: str | None = None
    ended_at: str | None = Field(None, description="when it was cancelled or expired")
    ended_because: str | None = None

    @classmethod
    def of(cls, order: Order) -> Self:
        """Returns the response for an order."""
        return cls(
            order_id=order.order_id,
            customer=order.customer,
            items=[
                ItemRequest.model_construct(name=item.name, quantity=item.quantity, price_cents=item.price_cents)
                for item in order.items
            ],
            total_cents=order.total_cents,
            currency=order.currency,
            state=order.state,
            created_at=rfc3339(order.created_at_ms),
            created_at_ms=order.created_at_ms,
            pay_until=rfc3339_or_none(order.pay_until_ms),
            paid_at=rfc3339_or_none(order.paid_at_ms),
            ended_at=rfc3339_or_none(order.ended_at_ms),
            ended_because=order.ended_because,
        )


class TransactionResponse(BaseModel):
    """The state of a transaction."""

    transaction_id: str | None
    state: TransactionState


class PlacedResponse(BaseModel):
    """The response to POST /orders. The status is 201 for COMMITTED or PENDING, and 202 for UNKNOWN with paths in `ask_later`."""

    order: OrderResponse
    transaction: TransactionResponse
    ask_later: list[str] | None = None

    @classmethod
    def of(cls, placed: Placed) -> Self:
        """Returns the response for a placed order."""
        places = [f"/orders/{placed.order.order_id}"]
        if placed.transaction_id is not None:
            places.append(f"/transactions/{placed.transaction_id}")
        return cls(
            order=OrderResponse.of(placed.order),
            transaction=TransactionResponse(transaction_id=placed.transaction_id, state=placed.state),
            ask_later=places if placed.state is TransactionState.UNKNOWN else None,
        )


class TimelineEventKind(StrEnum):
    """The kind of a timeline event."""

    ASKED_FOR = "ASKED_FOR"
    """The request arrived, and the half message was sent."""
    STORED = "STORED"
    """The local transaction stored the order."""
    PAID = OrderState.PAID.value
    CANCELLED = OrderState.CANCELLED.value
    EXPIRED = OrderState.EXPIRED.value


class EventResponse(BaseModel):
    """An event of an order, with the transaction of the event's message, if there is one."""

    at: str = Field(description="RFC 3339")
    what: TimelineEventKind
    transaction: TransactionResponse | None = None
    because: str | None = None

    @classmethod
    def of(cls, at_ms: int, what: TimelineEventKind, about: OrderTransaction | None = None, because: str | None = None) -> Self:
        """Returns the response for an event."""
        transaction = TransactionResponse(transaction_id=about.transaction_id, state=about.state) if about else None
        return cls(at=rfc3339(at_ms), what=what, transaction=transaction, because=because)


class TimelineResponse(BaseModel):
    """The events of an order, oldest first."""

    order_id: str
    events: list[EventResponse]

    @classmethod
    def of(cls, order: Order, transactions: Iterable[OrderTransaction]) -> Self:
        """Returns the events and their times, as stored in the order database."""
        of_kind = {transaction.kind: transaction for transaction in transactions}
        events = [EventResponse.of(order.created_at_ms, TimelineEventKind.ASKED_FOR)]
        if (stored := of_kind.get(TransactionKind.ORDER)) is not None:
            events.append(EventResponse.of(stored.written_at_ms, TimelineEventKind.STORED, stored))
        if order.paid_at_ms is not None:
            events.append(EventResponse.of(order.paid_at_ms, TimelineEventKind.PAID))
        if order.ended_at_ms is not None:
            ended, cancelled = TimelineEventKind(order.state), of_kind.get(TransactionKind.CANCELLATION)
            events.append(EventResponse.of(order.ended_at_ms, ended, cancelled, order.ended_because))
        return cls(order_id=order.order_id, events=sorted(events, key=lambda event: event.at))


class CancelledResponse(BaseModel):
    """The response to a cancellation. The status is 200 for CANCELLED, or 202 with a path to poll if the outcome is unknown."""

    order: OrderResponse
    ask_later: list[str] | None = None

    @classmethod
    def of(cls, cancelled: Cancelled) -> Self:
        """Returns the response for a cancellation."""
        places = [f"/orders/{cancelled.order.order_id}"]
        return cls(order=OrderResponse.of(cancelled.order), ask_later=None if cancelled.is_known else places)


class OrderPageQuery(BaseModel):
    """The parameters of GET /orders."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    customer: Customer
    limit: int = Field(50, ge=1, le=200)
    before: int | None = Field(None, ge=1, le=2**63 - 1, description="from `next` of the previous page")


class OrderPageResponse(BaseModel):
    """A page of a customer's orders, newest first. `next` is the path of the next page."""

    orders: list[OrderResponse]
    next: str | None


class OrderHealthResponse(BaseModel):
    """The health of the service. `status` is ok, degraded (no orders can be placed) or attention (action is required)."""

    status: Literal["ok", "degraded", "attention"]
    database: str
    broker: str
    missing: list[str] = Field(default=[], description="why orders cannot be placed, and what to do about it")
    attention: list[str] = Field(default=[], description="what needs a person's attention while orders can be placed")


DESCRIPTION: Final = ApiDescription(
    "Order service",
    __version__,
    {
        "POST /orders": Described(
            {201: PlacedResponse, 202: PlacedResponse}, body=OrderRequest, headers=OrderHeaders, problems=(409, 422)
        ),
        "GET /orders": Described({200: OrderPageResponse}, query=OrderPageQuery),
        "GET /orders/<order_id>": Described({200: OrderResponse}),
        "GET /orders/<order_id>/timeline": Described({200: TimelineResponse}),
        "POST /orders/<order_id>/payment": Described({200: OrderResponse}, body=PaymentRequest, problems=(409,)),
        "POST /orders/<order_id>/cancellation": Described(
            {200: CancelledResponse, 202: CancelledResponse}, body=CancellationRequest, problems=(409,)
        ),
        "GET /transactions/<transaction_id>": Described({200: TransactionResponse}),
    },
    health=OrderHealthResponse,
    ready=OrderHealthResponse,
    problems=tuple(outcome.problem for outcome in Outcome if outcome.problem is not None),
)
