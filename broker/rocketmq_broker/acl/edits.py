"""Pure functions that change accounts at an operator's request (RocketMQ's PlainPermissionManager.updateAccessConfig)."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from rocketmq_broker.acl.account import Account, PlainAcl
from rocketmq_broker.acl.errors import AccountMistake
from rocketmq_broker.acl.remote_address import parse_remote_addresses


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountUpdate:
    """The fields that an operator sets on an account. None keeps the current value; `admin` is always set."""

    access_key: str
    secret_key: str = dataclasses.field(repr=False)
    admin: bool = False
    white_remote_address: str | None = None
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: tuple[str, ...] | None = None
    group_perms: tuple[str, ...] | None = None

    def applied(self, account: Account | None) -> Account:
        """Returns the account with this update applied, or a new account if `account` is None. Raises AccountMistake."""
        values = {field.name: value for field in dataclasses.fields(self) if (value := getattr(self, field.name)) is not None}
        try:
            return dataclasses.replace(account, **values) if account is not None else Account(**values)
        except AccountMistake as error:
            raise AccountMistake(f"account {self.access_key!r}: {error}") from None


def file_of(files: Mapping[str, PlainAcl], access_key: str) -> str | None:
    """Returns the path of the file that contains the account; None if no file contains it."""
    return next((path for path, acl in files.items() if any(one.access_key == access_key for one in acl.accounts)), None)


def with_account(acl: PlainAcl, update: AccountUpdate, now_ms: int) -> PlainAcl:
    """Returns the file with the account added or changed. Raises AccountMistake."""
    current = next((account for account in acl.accounts if account.access_key == update.access_key), None)
    changed = update.applied(current)
    others = [changed if account is current else account for account in acl.accounts]
    return _next_version(acl, now_ms, accounts=tuple(others if current is not None else [*others, changed]))


def without_account(acl: PlainAcl, access_key: str, now_ms: int) -> PlainAcl:
    """Returns the file without the account."""
    left = tuple(account for account in acl.accounts if account.access_key != access_key)
    return _next_version(acl, now_ms, accounts=left)


def with_white_addresses(acl: PlainAcl, addresses: tuple[str, ...], now_ms: int) -> PlainAcl:
    """Returns the file with its trusted addresses replaced by `addresses`. Raises AccountMistake."""
    for address in addresses:
        parse_remote_addresses(address)
    return _next_version(acl, now_ms, global_white_addresses=addresses)


def _next_version(acl: PlainAcl, now_ms: int, **changes: tuple[Account, ...] | tuple[str, ...]) -> PlainAcl:
    return dataclasses.replace(acl, counter=acl.counter + 1, timestamp_ms=now_ms, **changes)  # type: ignore[arg-type]
