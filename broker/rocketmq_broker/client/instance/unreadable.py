"""Handles messages whose body cannot be decompressed, and responses that cannot be decoded."""

import functools
import logging
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, ParamSpec, TypeVar

from rocketmq_broker.client.errors import ClientError, UnreadableAnswer
from rocketmq_broker.message import MessageError, MessageExt, sysflag
from rocketmq_broker.message.errors import BodyTooLong, CorruptRecord
from rocketmq_broker.message.record import Record, to_message
from rocketmq_broker.protocol.errors import ProtocolError

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableMessage(MessageExt):
    """A message whose compressed body is damaged or too long for the consumer. `body` is the stored body.

    A push consumer moves it to the dead-letter topic without calling the listener. A pull consumer returns it.
    """

    problem: str
    """The reason why the body cannot be decompressed."""


def messages_of(records: Iterable[Record], broker_name: str, *, max_body_length: int) -> tuple[list[MessageExt], int | None]:
    """Returns the messages of one pull, and the queue offset of the first message left for the next pull, or None.

    `max_body_length` limits the length of each decompressed body. It also limits their total length in one pull, as a protection
    against many compression bombs.
    """
    messages: list[MessageExt] = []
    room = max_body_length
    for record in records:
        is_compressed = bool(record.sys_flag & sysflag.COMPRESSED)
        try:
            message = to_message(record, broker_name, max_body_length=room)
        except CorruptRecord as error:
            is_too_long = isinstance(error, BodyTooLong)
            if is_too_long and room < max_body_length:
                return messages, record.queue_offset
            message = unreadable(record, broker_name, str(error))
            if is_too_long:
                room = 0  # the part that was decompressed used up the limit
        messages.append(message)
        if is_compressed:
            room -= min(room, len(message.body))
    return messages, None


def unreadable(record: Record, broker_name: str, problem: str) -> UnreadableMessage:
    """Returns the record as an UnreadableMessage, and logs an error."""
    stored = to_message(replace(record, sys_flag=record.sys_flag & ~sysflag.COMPRESSED), broker_name)
    logger.error("message %s of topic %s cannot be read: %s", stored.message_id, stored.topic, problem)
    values = {field.name: getattr(stored, field.name) for field in fields(stored)}
    return UnreadableMessage(**{**values, "sys_flag": record.sys_flag}, problem=problem)


def understood(ask: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Decorates a request method so that it raises UnreadableAnswer, a ClientError, if the response cannot be decoded."""

    @functools.wraps(ask)
    async def asked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await ask(*args, **kwargs)
        except ClientError:
            raise
        except (ProtocolError, MessageError) as error:
            raise UnreadableAnswer(f"the response cannot be decoded: {error}") from error

    return asked
