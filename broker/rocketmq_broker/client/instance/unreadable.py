"""Messages whose body cannot be read, and brokers' answers that cannot be decoded."""

from __future__ import annotations

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
    """A message whose compressed body is damaged, or longer than the consumer takes. `body` is the stored one.

    No listener gets it: a push consumer moves it to the dead letters. A pull consumer returns it for the program to judge.
    """

    problem: str
    """The reason, in a sentence."""


def messages_of(records: Iterable[Record], broker_name: str, *, longest_body: int) -> tuple[list[MessageExt], int | None]:
    """Returns the messages of one pull, and the queue offset of the first that is left for the next pull, or None.

    `longest_body` also bounds all bodies of one pull together when uncompressed: 32 bombs must not add up.
    """
    messages: list[MessageExt] = []
    room = longest_body
    for record in records:
        is_compressed = bool(record.sys_flag & sysflag.COMPRESSED)
        try:
            message = to_message(record, broker_name, longest_body=room)
        except CorruptRecord as error:
            is_too_long = isinstance(error, BodyTooLong)
            if is_too_long and room < longest_body:
                return messages, record.queue_offset
            message = unreadable(record, broker_name, str(error))
            if is_too_long:
                room = 0  # uncompressing its beginning took as long
        messages.append(message)
        if is_compressed:
            room -= min(room, len(message.body))
    return messages, None


def unreadable(record: Record, broker_name: str, problem: str) -> UnreadableMessage:
    """Returns the record as a message that nobody can read, and logs it."""
    stored = to_message(replace(record, sys_flag=record.sys_flag & ~sysflag.COMPRESSED), broker_name)
    logger.error("message %s of topic %s cannot be read: %s", stored.message_id, stored.topic, problem)
    values = {field.name: getattr(stored, field.name) for field in fields(stored)}
    return UnreadableMessage(**{**values, "sys_flag": record.sys_flag}, problem=problem)


def understood(ask: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Makes a request raise UnreadableAnswer for an answer that cannot be decoded: programs and loops catch ClientError alone."""

    @functools.wraps(ask)
    async def asked(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await ask(*args, **kwargs)
        except ClientError:
            raise
        except (ProtocolError, MessageError) as error:
            raise UnreadableAnswer(f"the answer cannot be understood: {error}") from error

    return asked
