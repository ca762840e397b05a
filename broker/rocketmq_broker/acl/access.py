"""Checks the account, signature and permissions of each incoming request.

See RocketMQ's PlainPermissionManager.validate and checkPerm.
"""

from collections.abc import Iterable

from rocketmq_broker.acl.account import Account, by_access_key
from rocketmq_broker.acl.credentials import SessionCredentials
from rocketmq_broker.acl.errors import AccessDenied
from rocketmq_broker.acl.needs import Needs, TopicAt, is_read_only, needs_of, needs_of_consumer
from rocketmq_broker.acl.permission import Permission
from rocketmq_broker.acl.remote_address import RemoteAddresses
from rocketmq_broker.acl.signature import ACCESS_KEY, is_signed
from rocketmq_broker.message.topics import RETRY_PREFIX, TRACE_TOPIC
from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.command import RemotingCommand


class AccessRules:
    """Accounts and trusted addresses. A request from a trusted address needs neither signature nor permission, as in RocketMQ."""

    def __init__(self, accounts: Iterable[Account] = (), global_white_addresses: Iterable[RemoteAddresses] = ()) -> None:
        """Raises AccountMistake if two accounts have the same access key."""
        self._accounts = by_access_key(accounts)
        self._white_addresses = tuple(global_white_addresses)

    def __len__(self) -> int:
        """Returns the number of accounts."""
        return len(self._accounts)

    def check(self, command: RemotingCommand, remote_ip: str, topic_at: TopicAt) -> str | None:
        """Checks a request. Returns the account's access key, or None if the address is trusted.

        Raises AccessDenied if the request is not permitted, and ProtocolError if the header or body that the check needs cannot
        be decoded. The signature is checked before the body is decoded, so that unauthenticated requests stay cheap.
        """
        if self.is_trusted(remote_ip):
            return None
        fields = command.ext_fields()
        account = self._account(fields.get(ACCESS_KEY))
        if account.white_addresses.match(remote_ip):
            return None
        if not is_signed(fields, command.body, account.secret_key):
            raise AccessDenied(f"Check signature failed for accessKey={account.access_key}")
        needs = needs_of(command, topic_at)
        if not (account.auditor and is_read_only(command)):
            _check_permissions(account, command.code, needs)
        return account.access_key

    def may_publish(self, access_key: str, topic: str) -> bool:
        """Returns whether the account may send to the topic now."""
        account = self._accounts.get(access_key)
        return account is not None and (_is_all_allowed(account) or _allows(account, topic, Permission.PUB))

    def check_consumer(self, access_key: str | None, remote_ip: str, topic: str, group: str) -> None:
        """Raises AccessDenied unless the account may consume the topic as a member of the group.

        Does not verify the request's signature.
        """
        if self.is_trusted(remote_ip):
            return
        account = self._account(access_key)
        if not account.white_addresses.match(remote_ip):
            _check_permissions(account, RequestCode.PULL_MESSAGE, needs_of_consumer(topic, group))

    def is_trusted(self, remote_ip: str) -> bool:
        """Returns whether requests from the address need neither signature nor permission."""
        return any(addresses.match(remote_ip) for addresses in self._white_addresses)

    def credentials(self, access_key: str) -> SessionCredentials | None:
        """Returns the credentials of an account; None if there is no such account."""
        account = self._accounts.get(access_key)
        return SessionCredentials(account.access_key, account.secret_key) if account is not None else None

    def _account(self, access_key: str | None) -> Account:
        if access_key is None:
            raise AccessDenied("No accessKey is configured")
        account = self._accounts.get(access_key)
        if account is None:
            raise AccessDenied(f"No acl config for {access_key}")
        return account


def _check_permissions(account: Account, code: int, needs: Needs) -> None:
    if needs.resources.get(TRACE_TOPIC) == Permission.PUB:
        return  # every client may send its message traces
    if needs.is_admin_needed and not account.admin:
        raise AccessDenied(f"Need admin permission for request code={code}, but accessKey={account.access_key} is not")
    if _is_all_allowed(account):
        return
    for resource, needed in needs.resources.items():
        if not _allows(account, resource, needed):
            is_group = resource.startswith(RETRY_PREFIX)
            name = f"group:{resource.removeprefix(RETRY_PREFIX)}" if is_group else f"topic:{resource}"
            raise AccessDenied(f"No default permission for {name}")


def _is_all_allowed(account: Account) -> bool:
    return account.admin and not account.permissions


def _allows(account: Account, resource: str, needed: Permission) -> bool:
    default = account.default_group if resource.startswith(RETRY_PREFIX) else account.default_topic
    return account.permissions.get(resource, default).allows(needed)
