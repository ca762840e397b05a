"""The keys with which a client signs its requests (RocketMQ's SessionCredentials and AclClientRPCHook)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from rocketmq_broker.acl.errors import IllegalCredentials
from rocketmq_broker.acl.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE, signature


@dataclass(frozen=True, slots=True)
class SessionCredentials:
    """Access key and secret key of an account, and a cloud's security token if it gave one. The secret is never printed."""

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Raises IllegalCredentials if a key is blank."""
        if not self.access_key or not self.secret_key:
            missing = "access key" if not self.access_key else "secret key"
            raise IllegalCredentials(f"credentials without {missing}: both keys of the account are needed")

    def signed(self, fields: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Returns the request's extension fields, with those that sign it and the body."""
        complete = {**fields, ACCESS_KEY: self.access_key}
        if self.security_token is not None:
            complete[SECURITY_TOKEN] = self.security_token
        complete[SIGNATURE] = signature(complete, body, self.secret_key)
        return complete
