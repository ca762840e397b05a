"""The body of a message, for tables and for JSON."""

from __future__ import annotations

import base64
from typing import NamedTuple

from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.message.record import Record, to_message


class ReadBody(NamedTuple):
    """A body, uncompressed if possible."""

    text: str | None
    """None if it is no text in UTF-8."""
    in_base64: str
    problem: str | None
    """Why it cannot be uncompressed."""


def read_body(record: Record) -> ReadBody:
    """Reads the body of a record."""
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
