"""The message to publish again: the original's content if a broker still has it, or else the order row's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from pipelines.repair.plan import OrderSaid, RepairStep
from rocketmq_broker.message import Message, properties, topics

REPAIR: Final = "REPAIR"
"""A property of ours: the step of the plan that sent the message."""
_TAG: Final = "created"
_KEPT: Final = (properties.KEYS, properties.TAGS)


def message_again(step: RepairStep, topic: str, consumer_group: str, original: Message | None) -> Message:
    """Returns the message of a `publish` step, with the order's transaction id, which the ledger's entry will name.

    `original` is the half message or the delivered one. Its body is sent unchanged, including unknown fields.
    """
    assert step.order is not None
    assert step.transaction_id is not None
    named = {properties.KEYS: step.order.order_id, properties.TAGS: _TAG}
    if original is not None:
        named |= {name: value for name in _KEPT if (value := original.properties.get(name))}
    named |= {properties.UNIQUE_KEY: step.transaction_id, REPAIR: step.id}
    if step.to_group_only:
        named[properties.RETRY_TOPIC] = topic
    return Message(
        topic=topics.retry_topic(consumer_group) if step.to_group_only else topic,
        body=body_of(step.order) if original is None else original.body,
        properties=MappingProxyType(named),
    )


def body_of(order: OrderSaid) -> bytes:
    """Returns the body of an order's message, in its first version: readers of later ones understand it."""
    return json.dumps(msgspec.to_builtins(order), ensure_ascii=False).encode()


def contradiction(order: OrderSaid, body: bytes) -> str | None:
    """Returns the difference between a message's body and the order row; None if they agree."""
    said = _read(body)
    if said is None:
        return "the message's body is no order"
    for name in ("order_id", "customer", "total_cents", "currency", "created_at_ms"):
        if said.get(name) != getattr(order, name):
            return f"{name} is {said.get(name)!r} in the message and {getattr(order, name)!r} in the order database"
    return None


def names_order(body: bytes, order_id: str) -> bool:
    """Returns whether a message's body is of that order."""
    said = _read(body)
    return said is not None and said.get("order_id") == order_id


def _read(body: bytes) -> Mapping[str, Any] | None:
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return said if isinstance(said, dict) else None
