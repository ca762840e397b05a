"""The schemas of HTTP requests and responses."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from inventory_service.domain.shipment import ShipmentState
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
