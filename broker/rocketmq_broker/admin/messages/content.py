"""One message in full, for people and programs."""

from __future__ import annotations

import msgspec

from rocketmq_broker.admin.telling.bodies import read_body
from rocketmq_broker.message import properties as props
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record, host_text


class MessageContent(msgspec.Struct, frozen=True, rename="camel"):
    """A message, and its position."""

    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    offset_message_id: str
    """Says at which broker, and where."""
    message_id: str | None
    """The unique id that its producer gave it."""
    keys: list[str]
    tags: str | None
    born_ms: int
    born_host: str
    stored_ms: int
    store_host: str
    redeliveries: int
    properties: dict[str, str]
    body: str | None
    """As text, where it is text in UTF-8; uncompressed."""
    body_base64: str
    problem: str | None = None
    """Why its body cannot be uncompressed."""


def content_of(record: Record) -> MessageContent:
    """Decodes a record."""
    body = read_body(record)
    return MessageContent(
        topic=record.topic.decode(errors="replace"),
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        commit_log_offset=record.commit_log_offset,
        offset_message_id=offset_message_id(record.store_host, record.commit_log_offset),
        message_id=record.get_property(props.UNIQUE_KEY),
        keys=(record.get_property(props.KEYS) or "").split(),
        tags=record.get_property(props.TAGS),
        born_ms=record.born_timestamp,
        born_host=host_text(record.born_host),
        stored_ms=record.store_timestamp,
        store_host=host_text(record.store_host),
        redeliveries=record.reconsume_times,
        properties=props.decode(record.properties),
        body=body.text,
        body_base64=body.in_base64,
        problem=body.problem,
    )
