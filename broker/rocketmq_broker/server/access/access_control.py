"""Checks each request, and reloads the account files when they change (BrokerController.initialAcl, AclFileWatchService)."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from rocketmq_broker.acl import AccessDenied, AccessRules, AccountMistake, SessionCredentials
from rocketmq_broker.acl.account import PlainAcl
from rocketmq_broker.acl.needs import TopicAt
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.access.account_files import AccountFiles, Stamp, rules_of
from rocketmq_broker.server.access.refusal_log import RefusalLog

LOOK_EVERY_S: Final = 1.0
_NAME_OF_THE_ERROR: Final = "org.apache.rocketmq.acl.common.AclException"
"""The class name at the start of each error text. Apache's brokers send the same name, and tools search for it."""

Edit = Callable[[dict[str, PlainAcl]], tuple[str, PlainAcl]]
"""A function that takes the content of each file, keyed by path. Returns the path of the file to replace, and its new content.

Raises AccountMistake.
"""

logger = logging.getLogger(__name__)


class AccessControl:
    """Checks requests against the accounts.

    A changed file that contains a mistake is rejected, and the previous accounts stay in force.
    """

    def __init__(self, files: AccountFiles, topic_at: TopicAt) -> None:
        """Reads the account files. Raises AccountMistake or OSError."""
        self.files = files
        """The account files. Read-only for callers."""
        self._topic_at = topic_at
        self._stamp = files.stamp()
        self.content = files.read()
        """The content of each account file, keyed by path. Read-only for callers."""
        self._rules = rules_of(self.content)
        self._members: dict[Connection, str | None] = {}
        """The account that signed the last heartbeat of each connection; None for a trusted address."""
        self._changing = asyncio.Lock()
        self._refusals = RefusalLog()
        if not self._rules:
            logger.warning("no account in %s: only trusted addresses have access", ", ".join(self.content))

    def check(self, connection: Connection, command: RemotingCommand) -> None:
        """Checks a request.

        Raises RequestRefused with Apache's error text if access is denied, and ProtocolError if the request is malformed.
        """
        try:
            access_key = self._rules.check(command, connection.peer_ip, self._topic_at)
        except AccessDenied as error:
            self._refusals.note(connection.peer_ip, command.code, str(error))
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"{_NAME_OF_THE_ERROR}: {error}") from None

        if command.code == RequestCode.HEART_BEAT:
            self._members[connection] = access_key

    def may_check(self, connection: Connection, topic: bytes) -> bool:
        """Returns True if the producer on this connection may receive the topic's check-backs, which contain half messages."""
        if connection not in self._members:
            return False
        access_key = self._members[connection]
        return access_key is None or self._rules.may_publish(access_key, topic.decode(errors="replace"))

    def refuse_consumer(self, access_key: str | None, remote_ip: str, topic: str, group: str) -> None:
        """Raises RequestRefused unless the account may consume the topic in the group. The caller verifies the signature."""
        try:
            self._rules.check_consumer(access_key, remote_ip, topic, group)
        except AccessDenied as error:
            self._refusals.note(remote_ip, RequestCode.PULL_MESSAGE, str(error))
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"{_NAME_OF_THE_ERROR}: {error}") from None

    def credentials(self, access_key: str) -> SessionCredentials | None:
        """Returns the credentials of an account, or None if no account has this access key."""
        return self._rules.credentials(access_key)

    def is_trusted(self, remote_ip: str) -> bool:
        """Returns True if requests from the address need no account."""
        return self._rules.is_trusted(remote_ip)

    def forget(self, connection: Connection) -> None:
        """Removes the account of a closed connection."""
        self._members.pop(connection, None)

    async def follow(self) -> None:
        """Checks every second whether the account files have changed, and reloads them if so. Runs until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            async with self._changing:
                await self._look()
            self._refusals.summarize()

    async def change(self, edit: Edit) -> None:
        """Replaces one account file. Returns when the change is on disk and in force.

        Raises AccountMistake or OSError, and changes no account in that case.
        """
        async with self._changing:
            await self._look()
            path, acl = edit(self.content)
            content = {**self.content, path: acl}
            rules = rules_of(content)
            await asyncio.to_thread(self.files.write, path, acl)
            self._use(self.files.stamp(), content, rules)
        logger.warning("the accounts in %s were changed by an operator's request", path)

    async def _look(self) -> None:
        try:
            stamp = self.files.stamp()
            if stamp == self._stamp:
                return
            self._stamp = stamp
            content, rules = await asyncio.to_thread(self._read)
        except (AccountMistake, OSError) as error:
            logger.error("cannot reload the accounts; the previous ones stay in use: %s", error)
            return
        self._use(stamp, content, rules)
        logger.warning("accounts reloaded: %d", len(rules))

    def _read(self) -> tuple[dict[str, PlainAcl], AccessRules]:
        content = self.files.read()
        return content, rules_of(content)

    def _use(self, stamp: Stamp, content: dict[str, PlainAcl], rules: AccessRules) -> None:
        self._stamp, self.content, self._rules = stamp, content, rules
