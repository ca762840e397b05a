"""Bodies: what travels behind a header as JSON (RocketMQ's RemotingSerializable)."""

from __future__ import annotations

from typing import Self, TypeVar

import msgspec

from broker.protocol import fastjson
from broker.protocol.errors import BodyError

T = TypeVar("T")


class BodyPart(msgspec.Struct, rename="camel"):
    """Base of what bodies consist of."""


class Body(BodyPart):
    """Base of the bodies."""

    def encode(self) -> bytes:
        """The bytes to send."""
        return msgspec.json.encode(self)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The body that a peer sent, in JSON or as fastjson writes it. Raises BodyError."""
        return decode_body(cls, data)


def decode_body(body_type: type[T], data: bytes) -> T:
    """The body that a peer sent, of any type that msgspec knows. Raises BodyError."""
    try:
        return msgspec.json.decode(data, type=body_type)
    except msgspec.MsgspecError:
        pass
    try:
        return msgspec.json.decode(fastjson.standard_json(data), type=body_type)
    except msgspec.MsgspecError as error:
        raise BodyError(f"a body that is no {body_type.__name__}: {error}") from None
