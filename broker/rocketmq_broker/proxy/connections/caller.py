"""The client behind a call, as the call's metadata and its connection show it (RocketMQ's ContextInitPipeline)."""

from __future__ import annotations

import hmac
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.proxy.answers import CallRefused
from rocketmq_broker.proxy.protos import definition_pb2 as api

LONGEST_CLIENT_ID: Final = 512
_AUTHORIZATION: Final = re.compile(
    r"MQv2-HMAC-SHA1 +Credential=([^,/ ]+)(?:/[^,]*)?, *SignedHeaders=x-mq-date-time, *Signature=(\w+) *"
)

CredentialsOf = Callable[[str], SessionCredentials | None]
"""Returns the credentials of an access key; None where there is no such account."""


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
    metadata: dict[str, str], address: tuple[str, int], credentials_of: CredentialsOf | None, remaining_s: float | None = None
) -> Caller:
    """Returns the caller. Raises CallRefused without a client id, or with a wrong signature.

    Without `credentials_of` no account is needed, and signatures are not looked at.
    """
    client_id = metadata.get("x-mq-client-id", "")
    if not client_id.strip() or len(client_id) > LONGEST_CLIENT_ID:
        raise CallRefused(api.CLIENT_ID_REQUIRED, f"x-mq-client-id: 1 to {LONGEST_CLIENT_ID} letters are expected")
    credentials = _credentials(metadata, credentials_of) if credentials_of is not None else None
    remaining_ms = int(remaining_s * 1000) if remaining_s is not None else None
    return Caller(client_id, address, metadata.get("x-mq-language", ""), credentials, remaining_ms)


def _credentials(metadata: dict[str, str], credentials_of: CredentialsOf) -> SessionCredentials | None:
    """Returns the account that signed the call; None for an unsigned call, which only a trusted address may make."""
    authorization = metadata.get("authorization", "")
    if not authorization:
        return None
    read = _AUTHORIZATION.fullmatch(authorization)
    if read is None:
        raise CallRefused(
            api.UNAUTHORIZED,
            "authorization: MQv2-HMAC-SHA1 with Credential, SignedHeaders=x-mq-date-time and Signature is expected",
        )
    access_key, signature = read.groups()
    credentials = credentials_of(access_key)
    if credentials is None:
        raise CallRefused(api.UNAUTHORIZED, f"No acl config for {access_key}")
    made = hmac.new(credentials.secret_key.encode(), metadata.get("x-mq-date-time", "").encode(), "sha1").hexdigest()
    if not hmac.compare_digest(made, signature.lower()):
        raise CallRefused(api.UNAUTHORIZED, f"Check signature failed for accessKey={access_key}")
    return credentials
