"""The client behind a call, as the call's metadata and its connection show it (RocketMQ's ContextInitPipeline)."""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from typing import Final, Protocol

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.proxy.answers import CallRefused
from rocketmq_broker.proxy.protos import definition_pb2 as api

MAX_CLIENT_ID_LENGTH: Final = 512
_AUTHORIZATION: Final = re.compile(
    r"MQv2-HMAC-SHA1 +Credential=([^,/ ]+)(?:/[^,]*)?, *SignedHeaders=x-mq-date-time, *Signature=(\w+) *"
)


class Accounts(Protocol):
    """The accounts in force."""

    def credentials(self, access_key: str) -> SessionCredentials | None:
        """Returns the credentials of an account; None where there is no such account."""

    def is_trusted(self, remote_ip: str) -> bool:
        """Returns whether requests from the address need no account."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A client: its id, its address, the language that it says it speaks, and its account if it signs its calls."""

    client_id: str
    address: tuple[str, int]
    language: str = ""
    credentials: SessionCredentials | None = None
    remaining_ms: int | None = None
    """The time until the call's deadline; None without one."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Returns what two connections of one client share: its id, its machine and its account."""
        return self.client_id, self.address[0], self.credentials.access_key if self.credentials is not None else ""


def caller_of(
    metadata: dict[str, str], address: tuple[str, int], accounts: Accounts | None, remaining_s: float | None = None
) -> Caller:
    """Returns the caller. Raises CallRefused without a client id, or without the signature of an account.

    Without `accounts` none is needed, and signatures are not looked at.
    """
    client_id = metadata.get("x-mq-client-id", "")
    if not client_id.strip() or len(client_id) > MAX_CLIENT_ID_LENGTH:
        raise CallRefused(api.CLIENT_ID_REQUIRED, f"x-mq-client-id: 1 to {MAX_CLIENT_ID_LENGTH} letters are expected")
    credentials = _credentials(metadata, address[0], accounts) if accounts is not None else None
    remaining_ms = int(remaining_s * 1000) if remaining_s is not None else None
    return Caller(client_id, address, metadata.get("x-mq-language", ""), credentials, remaining_ms)


def _credentials(metadata: dict[str, str], remote_ip: str, accounts: Accounts) -> SessionCredentials | None:
    """Returns the account that signed the call; None for an unsigned call of a trusted address."""
    authorization = metadata.get("authorization", "")
    if not authorization:
        if accounts.is_trusted(remote_ip):
            return None
        raise CallRefused(api.UNAUTHORIZED, "No accessKey is configured")
    read = _AUTHORIZATION.fullmatch(authorization)
    if read is None:
        raise CallRefused(
            api.UNAUTHORIZED,
            "authorization: MQv2-HMAC-SHA1 with Credential, SignedHeaders=x-mq-date-time and Signature is expected",
        )
    access_key, signature = read.groups()
    credentials = accounts.credentials(access_key)
    if credentials is None:
        raise CallRefused(api.UNAUTHORIZED, f"No acl config for {access_key}")
    made = hmac.new(credentials.secret_key.encode(), metadata.get("x-mq-date-time", "").encode(), "sha1").hexdigest()
    if not hmac.compare_digest(made, signature.lower()):
        raise CallRefused(api.UNAUTHORIZED, f"Check signature failed for accessKey={access_key}")
    return credentials
