"""The header of a request with the fields that sign it (RocketMQ's AclClientRPCHook)."""

from __future__ import annotations

from broker.acl import SessionCredentials
from broker.protocol.command_header import CommandHeader


class SignedHeader(CommandHeader):
    """Another header's fields, and those of the signature."""

    fields: dict[str, str]

    def ext_fields(self) -> dict[str, str]:
        """All of them by their names on the wire."""
        return self.fields


def signed(header: CommandHeader | None, body: bytes, credentials: SessionCredentials) -> SignedHeader:
    """The header of a request that its receiver knows to come from the account."""
    return SignedHeader(credentials.signed(header.ext_fields() if header is not None else {}, body))
