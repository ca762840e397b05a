"""The schemas of HTTP requests and responses."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from inventory_service.domain.shipment import Shipment, ShipmentState
from service_runtime.http.health import Status, Word
from service_runtime.inbox.backlog import InboxHealth
from service_runtime.text import NO_CONTROL_CHARACTERS

MAX_AVAILABLE = 10**12


class Article(BaseModel):
    """The name of an article in a path."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True), NO_CONTROL_CHARACTERS]


class StockRequest(BaseModel):
    """The body of PUT /stock/{article}."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, json_schema_extra={"examples": [{"available": 100}]})

    available: int = Field(ge=0, le=MAX_AVAILABLE)


class StockResponse(BaseModel):
    """The stock of an article."""

    article: str
    available: int


class ShipmentResponse(BaseModel):
    """The shipment of an order."""

    order_id: str
    state: ShipmentState
    missing: str | None = Field(description="the first article with too little in stock")

    @classmethod
    def of(cls, shipment: Shipment) -> Self:
        """Returns the response for a shipment."""
        return cls(order_id=shipment.order_id, state=shipment.state, missing=shipment.missing)


class InventoryHealthResponse(BaseModel):
    """The health of the service.

    degraded: no order can be shipped, or no shortage can be reported;
    attention: single messages fail, are parked or are dead letters, or the database was reset to an older state.
    """

    status: Status
    database: Word
    broker: Word
    inbox: InboxHealth | None = None
    """The messages that are acknowledged and not processed yet; null if the database does not answer."""
    attention: list[str] = Field(default=[], description="what needs a person's attention, with the command for it")
    missing: list[str] = []
    """A line for each reason why orders cannot be shipped, with what to do about it."""
