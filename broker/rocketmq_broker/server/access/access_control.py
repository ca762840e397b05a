"""Checks each request, and follows the account files as they change (RocketMQ's RPCHook of initialAcl, AclFileWatchService)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from rocketmq_broker.acl import AccessDenied, AccessRules, AccountMistake, SessionCredentials
from rocketmq_broker.acl.needs import TopicAt
from rocketmq_broker.acl.plain_acl import PlainAcl
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.remoting.connections.connection import Connection
from rocketmq_broker.remoting.dispatcher import RequestRefused
from rocketmq_broker.server.access.account_files import AccountFiles, Stamp, rules_of
from rocketmq_broker.server.access.refusal_log import RefusalLog

LOOK_EVERY_S: Final = 1.0
_NAME_OF_THE_ERROR: Final = "org.apache.rocketmq.acl.common.AclException"
"""Apache's brokers begin the remark with it, and tools look for it."""

Edit = Callable[[dict[str, PlainAcl]], tuple[str, PlainAcl]]
"""Gets the content of the files; returns the file to replace, and its new content. Raises AccountMistake."""

logger = logging.getLogger(__name__)


class AccessControl:
    """The accounts in force. A file with a mistake changes nothing: the accounts read before it stay in force."""

    def __init__(self, files: AccountFiles, topic_at: TopicAt) -> None:
        """Reads the files. Raises AccountMistake or OSError."""
        self._files = files
        self._topic_at = topic_at
        self._stamp = files.stamp()
        self._content = files.read()
        self._rules = rules_of(self._content)
        self._members: dict[Connection, str | None] = {}
        """By connection, the account that its last heartbeat was signed with; None for a trusted address."""
        self._changing = asyncio.Lock()
        self._refusals = RefusalLog()
        if not self._rules:
            logger.warning("no account in %s: nobody but trusted addresses may come in", ", ".join(self._content))

    @property
    def content(self) -> dict[str, PlainAcl]:
        """The content of each file, by its path."""
        return self._content

    @property
    def files(self) -> AccountFiles:
        """The account files."""
        return self._files

    def check(self, connection: Connection, command: RemotingCommand) -> None:
        """Raises RequestRefused, in Apache's words, or ProtocolError if the request cannot be read."""
        try:
            access_key = self._rules.check(command, connection.peer_ip, self._topic_at)
        except AccessDenied as error:
            self._refusals.note(connection.peer_ip, command.code, str(error))
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"{_NAME_OF_THE_ERROR}: {error}") from None

        if command.code == RequestCode.HEART_BEAT:
            self._members[connection] = access_key

    def may_check(self, connection: Connection, topic: bytes) -> bool:
        """Returns whether a producer at that connection may be asked about the topic's transactions, and so see half messages."""
        if connection not in self._members:
            return False
        access_key = self._members[connection]
        return access_key is None or self._rules.may_publish(access_key, topic.decode(errors="replace"))

    def refuse_consumer(self, access_key: str | None, remote_ip: str, topic: str, group: str) -> None:
        """Raises RequestRefused unless the account may consume the topic in the group. Its signature is checked already."""
        try:
            self._rules.check_consumer(access_key, remote_ip, topic, group)
        except AccessDenied as error:
            self._refusals.note(remote_ip, RequestCode.PULL_MESSAGE, str(error))
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, f"{_NAME_OF_THE_ERROR}: {error}") from None

    def credentials(self, access_key: str) -> SessionCredentials | None:
        """Returns the credentials of an account in force; None if there is no such account."""
        return self._rules.credentials(access_key)

    def is_trusted(self, remote_ip: str) -> bool:
        """Returns whether requests from the address need no account."""
        return self._rules.is_trusted(remote_ip)

    def forget(self, connection: Connection) -> None:
        """Forgets a closed connection."""
        self._members.pop(connection, None)

    async def follow(self) -> None:
        """Checks the files each second, and reads them again when they changed. Runs until it is cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            async with self._changing:
                await self._look()
            self._refusals.summarize()

    async def change(self, edit: Edit) -> None:
        """Replaces one file; in force and on disk when it returns. Raises AccountMistake or OSError without any change."""
        async with self._changing:
            await self._look()
            path, acl = edit(self._content)
            content = {**self._content, path: acl}
            rules = rules_of(content)
            await asyncio.to_thread(self._files.write, path, acl)
            self._use(self._files.stamp(), content, rules)
        logger.warning("the accounts in %s were changed by an operator's request", path)

    async def _look(self) -> None:
        try:
            stamp = self._files.stamp()
            if stamp == self._stamp:
                return
            self._stamp = stamp
            content, rules = await asyncio.to_thread(self._read)
        except (AccountMistake, OSError) as error:
            logger.error("the accounts that were read before stay in force: %s", error)
            return
        self._use(stamp, content, rules)
        logger.warning("the accounts were read anew: %d of them are in force", len(rules))

    def _read(self) -> tuple[dict[str, PlainAcl], AccessRules]:
        content = self._files.read()
        return content, rules_of(content)

    def _use(self, stamp: Stamp, content: dict[str, PlainAcl], rules: AccessRules) -> None:
        self._stamp, self._content, self._rules = stamp, content, rules
