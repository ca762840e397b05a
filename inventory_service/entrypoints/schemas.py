"""The wire format of requests and responses."""

from typing import Annotated, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from inventory_service.domain.shipment import Shipment, ShipmentState
from service_runtime.failing.holds import HoldCause
from service_runtime.http.health import Status, Word
from service_runtime.text import NO_CONTROL_CHARACTERS

MAX_AVAILABLE = 10**12


class Article(BaseModel):
    """The name of an article, as a path holds it."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=200, strip_whitespace=True), NO_CONTROL_CHARACTERS]


class StockRequest(BaseModel):
    """The body of PUT /stock/{article}."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, json_schema_extra={"examples": [{"available": 100}]})

    available: int = Field(ge=0, le=MAX_AVAILABLE)


class StockResponse(BaseModel):
    """How many of an article there are."""

    article: str
    available: int


class ShipmentResponse(BaseModel):
    """What became of an order here."""

    order_id: str
    state: ShipmentState
    missing: str | None = Field(description="the first article of which there was too little")

    @classmethod
    def of(cls, shipment: Shipment) -> Self:
        """Returns the response for a shipment."""
        return cls(order_id=shipment.order_id, state=shipment.state, missing=shipment.missing)


class HeldMessagesHealth(BaseModel):
    """Messages that the consumer keeps and tries again and again; the log says why."""

    messages: int
    for_s: float
    cause: HoldCause
    """refusal: the database refuses them, and has taken no other since."""


class InventoryHealthResponse(BaseModel):
    """What works: degraded if no order can be shipped; attention: a message is held, some are dead letters, or the database
    went back in time."""

    status: Status
    database: Word
    broker: Word
    held: HeldMessagesHealth | None = None
    attention: list[str] = Field(default=[], description="what a person has to look after, with the command for it")
    missing: list[str] = []
    """What keeps orders from being shipped, and what to do about it."""
