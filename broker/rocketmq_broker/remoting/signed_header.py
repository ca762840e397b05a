"""The header of a request with the fields that sign it (RocketMQ's AclClientRPCHook)."""

from __future__ import annotations

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.protocol import ext_fields
from rocketmq_broker.protocol.command_header import CommandHeader


class SignedHeader(CommandHeader):
    """Another header's fields, and those of the signature."""

    fields: dict[str, str]

    def ext_fields(self) -> dict[str, str]:
        """Returns all fields by their names on the wire."""
        return self.fields

    def encode_binary(self) -> bytes:
        """Encodes the fields without empty values: Apache's brokers would read them as null, and sign that word."""
        return ext_fields.encode_binary({name: value for name, value in self.fields.items() if value})


def signed(header: CommandHeader | None, body: bytes, credentials: SessionCredentials) -> SignedHeader:
    """Returns the header of a request, signed by the account."""
    return SignedHeader(credentials.signed(header.ext_fields() if header is not None else {}, body))
