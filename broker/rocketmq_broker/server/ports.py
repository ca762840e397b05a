"""What parts of the broker need of others that they do not know: small enough for a test to stand in for."""

from __future__ import annotations

from typing import Protocol

from rocketmq_broker.protocol.command import Answerable
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.remoting.connection import Connection


class Durability(Protocol):
    """What releases answers once the store keeps its promise (GroupCommit)."""

    def appended(self) -> None:
        """Something was appended: write it soon."""

    def after_durable(
        self, position: int, connection: Connection, request: Answerable, header: CommandHeader | None = None, body: bytes = b""
    ) -> None:
        """Answers the request with SUCCESS once everything before the position is durable."""


class SystemTopics(Protocol):
    """Makes topics of the broker's own (TopicTable)."""

    def internal(self, topic: str, queue_nums: int) -> object:
        """The topic, made if there is none."""
