"""Builds the message of a `publish` step. It uses the original message if a broker still has it, otherwise the order row."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import msgspec

from pipelines.repair.plan import OrderFields, RepairStep
from rocketmq_broker.message import Message, properties, topics

REPAIR: Final = "REPAIR"
"""The property with the id of the plan's step that sent the message."""
_TAG: Final = "created"
_KEPT: Final = (properties.KEYS, properties.TAGS)


def message_again(step: RepairStep, topic: str, consumer_group: str, original: Message | None) -> Message:
    """Returns the message of a `publish` step.

    The message contains the order's transaction id, as the ledger's entry will. `original` is the half message or the
    delivered message. Its body is sent unchanged.
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


def body_of(order: OrderFields) -> bytes:
    """Returns the body of an order's message in version 1, which consumers of all versions support."""
    return json.dumps(msgspec.to_builtins(order), ensure_ascii=False).encode()


def contradiction(order: OrderFields, body: bytes) -> str | None:
    """Returns the difference between a message's body and the order row, or None if they agree."""
    said = _read(body)
    if said is None:
        return "the message's body is not an order"
    for name in ("order_id", "customer", "total_cents", "currency", "created_at_ms"):
        if said.get(name) != getattr(order, name):
            return f"{name} is {said.get(name)!r} in the message and {getattr(order, name)!r} in the order database"
    return None


def names_order(body: bytes, order_id: str) -> bool:
    """Returns True if the message's body has this order id."""
    said = _read(body)
    return said is not None and said.get("order_id") == order_id


def _read(body: bytes) -> Mapping[str, Any] | None:
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return said if isinstance(said, dict) else None
