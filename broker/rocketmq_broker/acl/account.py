"""The content of a plain_acl.yml file, and its accounts (RocketMQ's PlainAccessData and PlainAccessConfig)."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from rocketmq_broker.acl.errors import AccountMistake
from rocketmq_broker.acl.permission import Permission, parse_named_permission, parse_permission
from rocketmq_broker.acl.remote_address import RemoteAddresses, parse_remote_addresses
from rocketmq_broker.message.topics import retry_topic

_MIN_KEY_LENGTH: Final = 7


@dataclass(frozen=True, kw_only=True)
class Account:
    """A validated account, with values as written in the file.

    Raises AccountMistake if a value is invalid. Never prints the secret key.
    """

    access_key: str
    secret_key: str = field(repr=False)
    white_remote_address: str = ""
    admin: bool = False
    default_topic_perm: str = ""
    """The permission for topics that have no entry. An empty string means DENY."""
    default_group_perm: str = ""
    topic_perms: tuple[str, ...] = ()
    """The permissions on topics, as entries such as `topicA=PUB|SUB`."""
    group_perms: tuple[str, ...] = ()
    auditor: bool = False
    """Whether the account may read everything and change nothing. Apache's brokers ignore this property."""

    def __post_init__(self) -> None:
        for name, key in (("accessKey", self.access_key), ("secretKey", self.secret_key)):
            if len(key) < _MIN_KEY_LENGTH:
                raise AccountMistake(f"{name} too short: at least {_MIN_KEY_LENGTH} characters")
            if not key.isprintable() or key != key.strip():
                raise AccountMistake(
                    f"{name} must not begin or end with a space, or contain unprintable characters such as tabs, "
                    "because the file cannot store them"
                )
        _ = self.white_addresses, self.permissions, self.default_topic, self.default_group

    @cached_property
    def white_addresses(self) -> RemoteAddresses:
        """Returns the addresses from which the account's requests need neither signature nor permission."""
        return parse_remote_addresses(self.white_remote_address)

    @cached_property
    def permissions(self) -> dict[str, Permission]:
        """Returns the permissions, keyed by topic. A group's permission is stored under its retry topic, as in RocketMQ."""
        by_topic = dict(parse_named_permission(text) for text in self.topic_perms)
        by_group = dict(parse_named_permission(text) for text in self.group_perms)
        return {**{retry_topic(group): permission for group, permission in by_group.items()}, **by_topic}

    @cached_property
    def default_topic(self) -> Permission:
        """Returns the permission for topics that have no entry."""
        return _parse_default(self.default_topic_perm)

    @cached_property
    def default_group(self) -> Permission:
        """Returns the permission for groups that have no entry."""
        return _parse_default(self.default_group_perm)


def by_access_key(accounts: Iterable[Account]) -> dict[str, Account]:
    """Returns the accounts, keyed by access key. Raises AccountMistake if two accounts have the same key."""
    table: dict[str, Account] = {}
    for account in accounts:
        if account.access_key in table:
            raise AccountMistake(f"duplicate account {account.access_key!r}")
        table[account.access_key] = account
    return table


def _parse_default(text: str) -> Permission:
    return parse_permission(text) if text else Permission.DENY


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
