"""The content of a plain_acl.yml file (RocketMQ's PlainAccessData)."""

from __future__ import annotations

from dataclasses import dataclass

from rocketmq_broker.acl.account import Account
from rocketmq_broker.acl.remote_address import RemoteAddresses, parse_remote_addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class PlainAcl:
    """The accounts and trusted addresses of one file, with the file's version."""

    global_white_addresses: tuple[str, ...] = ()
    accounts: tuple[Account, ...] = ()
    counter: int = 0
    """The number of changes that tools have made (RocketMQ's DataVersion)."""
    timestamp_ms: int = 0
    """The time of the last of these changes, in milliseconds since the epoch."""

    def trusted(self) -> list[RemoteAddresses]:
        """Returns the trusted addresses, whose requests are not checked. Raises AccountMistake if an address is invalid."""
        return [parse_remote_addresses(text) for text in self.global_white_addresses]
