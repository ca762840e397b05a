"""The target of the attacks: a broker with accounts and messages, set up by the attacked checkout's scripts."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.longest_stop.stage import staged
from rocketmq_broker.acl import SessionCredentials
from rocketmq_broker.message import properties as props
from rocketmq_broker.message.ids import parse_offset_message_id
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers import CreateTopicRequestHeader, SendMessageRequestHeader, SendMessageResponseHeader
from rocketmq_broker.remoting import RemotingClient
from rocketmq_broker.remoting.connections.own_requests import SignedHeader

SECRET: Final = "a long secret"
SECRET_TEXT: Final = b"what only its consumers may read"
FORBIDDEN: Final = "orders"
GROUP: Final = "attackers"
_TIMEOUT_MS: Final = 20_000
_MORE_ACCOUNTS: Final = f"""
- accessKey: stranger
  secretKey: {SECRET}
- accessKey: consumer
  secretKey: {SECRET}
  groupPerms: [{GROUP}=SUB]
"""
NOBODY: Final = None
STRANGER: Final = SessionCredentials("stranger", SECRET)
CONSUMER: Final = SessionCredentials("consumer", SECRET)


@dataclass(frozen=True, slots=True)
class Place:
    """A broker, and an attacker's knowledge of it."""

    address: str
    name_server: str
    secrets: Path
    message_at: int
    """The commit log offset of a message of a topic that the attackers may not read."""
    half_at: int
    """The position of an undecided half message of that topic."""

    def account(self, access_key: str, secret: str) -> SessionCredentials:
        """Returns an account of docker-compose.yml."""
        return SessionCredentials(access_key, (self.secrets / secret).read_text())

    async def ask(
        self,
        who: SessionCredentials | None,
        code: int,
        fields: Mapping[str, str],
        body: bytes = b"",
        *,
        address: str | None = None,
    ) -> RemotingCommand:
        """Sends a request with exactly these fields, and returns the answer. Raises RemotingError."""
        client = RemotingClient()
        try:
            header = SignedHeader(who.signed(fields, body) if who is not None else dict(fields))
            return await client.invoke(address or self.address, code, header, body, timeout_ms=_TIMEOUT_MS)
        finally:
            await client.close()


@asynccontextmanager
async def placed(checkout: Path, folder: Path) -> AsyncIterator[Place]:
    """Yields a broker of that checkout with the accounts of docker-compose.yml and two attackers' accounts."""
    secrets = folder / "secrets"
    await asyncio.to_thread(_make_secrets, checkout, secrets)
    (folder / "conf").mkdir()
    (folder / "conf" / "plain_acl.yml").write_text((secrets / "plain-acl").read_text() + _MORE_ACCOUNTS)
    async with staged(checkout, folder / "store", {"aclEnable": "true", "rocketmqHome": str(folder)}) as stage:
        empty = Place(stage.address, stage.name_server, secrets, 0, 0)
        message_at, half_at = await _sent(empty, is_half=False), await _sent(empty, is_half=True)
        yield Place(stage.address, stage.name_server, secrets, message_at, half_at)


def _make_secrets(checkout: Path, secrets: Path) -> None:
    subprocess.run([checkout / "docker" / "make-secrets", secrets], check=True, capture_output=True, timeout=60)


async def _sent(place: Place, *, is_half: bool) -> int:
    """Stores a message of the forbidden topic. Returns its commit log offset."""
    operators = place.account("operators", "operators-account")
    topic = CreateTopicRequestHeader(FORBIDDEN, "TBW102", 1, 1, 6, "SINGLE_TAG", 0)
    await place.ask(operators, RequestCode.UPDATE_AND_CREATE_TOPIC, topic.ext_fields())
    encoded = props.encode({"TRAN_MSG": "true", "PGROUP": "p", "UNIQ_KEY": "half"} if is_half else {"UNIQ_KEY": "plain"})
    header = SendMessageRequestHeader("p", FORBIDDEN, "TBW102", 1, 0, 4 if is_half else 0, 1_790_000_000_000, 0, encoded.decode())
    answer = await place.ask(operators, RequestCode.SEND_MESSAGE, header.ext_fields(), SECRET_TEXT)
    if answer.code != ResponseCode.SUCCESS:
        raise RuntimeError(f"the message was not sent: {answer.remark}")
    return parse_offset_message_id(answer.decode_header(SendMessageResponseHeader).msg_id).commit_log_offset


def program(checkout: Path, *words: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Starts a program of that checkout."""
    return subprocess.Popen(
        [sys.executable, "-P", *words],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": f"{checkout / 'broker'}:{checkout}", **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
