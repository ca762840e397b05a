"""The keys with which a client signs its requests (RocketMQ's SessionCredentials and AclClientRPCHook)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rocketmq_broker.acl.errors import IllegalCredentials
from rocketmq_broker.acl.signature import ACCESS_KEY, SECURITY_TOKEN, SIGNATURE, signature


@dataclass(frozen=True, slots=True)
class SessionCredentials:
    """The keys of an account, and the security token that a cloud provider may issue.

    The secret key and the token are never printed.
    """

    access_key: str
    secret_key: str = field(repr=False)
    security_token: str | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Raises IllegalCredentials if a key is empty."""
        if not self.access_key or not self.secret_key:
            missing = "access key" if not self.access_key else "secret key"
            raise IllegalCredentials(f"{missing} is empty: credentials need an access key and a secret key")

    def signed(self, fields: Mapping[str, str], body: bytes) -> dict[str, str]:
        """Returns the extension fields together with the access key, the security token (if any) and the signature."""
        complete = {**fields, ACCESS_KEY: self.access_key}
        if self.security_token is not None:
            complete[SECURITY_TOKEN] = self.security_token
        complete[SIGNATURE] = signature(complete, body, self.secret_key)
        return complete
