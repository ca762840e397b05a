"""The complete content of a message."""

import msgspec

from rocketmq_broker.admin.output.bodies import read_body
from rocketmq_broker.message import properties as props
from rocketmq_broker.message.ids import offset_message_id
from rocketmq_broker.message.record import Record, host_text


class MessageContent(msgspec.Struct, frozen=True, rename="camel"):
    """A message with its position, properties and body."""

    topic: str
    queue_id: int
    queue_offset: int
    commit_log_offset: int
    offset_message_id: str
    """The id derived from the broker's address and the commit log offset."""
    message_id: str | None
    """The unique id assigned by the producer; None if there is none."""
    keys: list[str]
    tags: str | None
    born_ms: int
    born_host: str
    stored_ms: int
    store_host: str
    redeliveries: int
    properties: dict[str, str]
    body: str | None
    """The decompressed body; None if it is not UTF-8 text."""
    body_base64: str
    problem: str | None = None
    """The reason why the body cannot be decompressed; None if it can."""

    @property
    def transaction_id(self) -> str | None:
        """The id of the message's transaction; None for an ordinary message."""
        return self.message_id if props.TRANSACTION_PREPARED in self.properties else None


def content_of(record: Record) -> MessageContent:
    """Returns the content of a record."""
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
