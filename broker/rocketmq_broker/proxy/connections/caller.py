"""Determines the client of a call from the call's metadata and connection (RocketMQ's ContextInitPipeline)."""

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
    """The accounts of the broker."""

    def credentials(self, access_key: str) -> SessionCredentials | None:
        """Returns the credentials of an account, or None if it does not exist."""

    def is_trusted(self, remote_ip: str) -> bool:
        """Returns whether requests from that address need no account."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The client of a call: its id, address and programming language, and its account if the call is signed."""

    client_id: str
    address: tuple[str, int]
    language: str = ""
    credentials: SessionCredentials | None = None
    remaining_ms: int | None = None
    """The time until the call's deadline, in milliseconds; None if the call has no deadline."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Returns the key that all connections of one client share: its id, host and account."""
        return self.client_id, self.address[0], self.credentials.access_key if self.credentials is not None else ""


def caller_of(
    metadata: dict[str, str], address: tuple[str, int], accounts: Accounts | None, remaining_s: float | None = None
) -> Caller:
    """Returns the caller. Raises CallRefused if the client id or the signature of an account is missing.

    If `accounts` is None, calls need no account and signatures are ignored.
    """
    client_id = metadata.get("x-mq-client-id", "")
    if not client_id.strip() or len(client_id) > MAX_CLIENT_ID_LENGTH:
        reason = f"x-mq-client-id must not be blank, and must have at most {MAX_CLIENT_ID_LENGTH} characters"
        raise CallRefused(api.CLIENT_ID_REQUIRED, reason)
    credentials = _credentials(metadata, address[0], accounts) if accounts is not None else None
    remaining_ms = int(remaining_s * 1000) if remaining_s is not None else None
    return Caller(client_id, address, metadata.get("x-mq-language", ""), credentials, remaining_ms)


def _credentials(metadata: dict[str, str], remote_ip: str, accounts: Accounts) -> SessionCredentials | None:
    """Returns the account that signed the call, or None for an unsigned call from a trusted address.

    Raises CallRefused for other unsigned calls, unknown accounts and invalid signatures.
    """
    authorization = metadata.get("authorization", "")
    if not authorization:
        if accounts.is_trusted(remote_ip):
            return None
        raise CallRefused(api.UNAUTHORIZED, "No accessKey is configured")
    read = _AUTHORIZATION.fullmatch(authorization)
    if read is None:
        raise CallRefused(
            api.UNAUTHORIZED,
            "invalid authorization: must be MQv2-HMAC-SHA1 with Credential, SignedHeaders=x-mq-date-time and Signature",
        )
    access_key, signature = read.groups()
    credentials = accounts.credentials(access_key)
    if credentials is None:
        raise CallRefused(api.UNAUTHORIZED, f"No acl config for {access_key}")
    made = hmac.new(credentials.secret_key.encode(), metadata.get("x-mq-date-time", "").encode(), "sha1").hexdigest()
    if not hmac.compare_digest(made, signature.lower()):
        raise CallRefused(api.UNAUTHORIZED, f"Check signature failed for accessKey={access_key}")
    return credentials
