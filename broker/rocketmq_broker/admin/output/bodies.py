"""Decodes the bodies of messages for output."""

import base64
from typing import NamedTuple

from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.message.record import Record, to_message


class ReadBody(NamedTuple):
    """A message body, decompressed if possible."""

    text: str | None
    """The body as text; None if it is not UTF-8 text."""
    in_base64: str
    problem: str | None
    """The reason why the body cannot be decompressed; None if it can."""


def read_body(record: Record) -> ReadBody:
    """Returns the decompressed body of a record."""
    body, problem = record.body, None
    try:
        body = to_message(record).body
    except CorruptRecord as error:
        problem = str(error)
    return ReadBody(_text(body), base64.b64encode(body).decode(), problem)


def _text(body: bytes) -> str | None:
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None
