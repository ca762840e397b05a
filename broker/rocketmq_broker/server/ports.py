"""The ports by which parts of the broker use others that they do not import: small enough for a test to replace."""

from __future__ import annotations

from typing import Protocol

from rocketmq_broker.protocol.command import Answerable
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.remoting.connections.connection import Connection


class Durability(Protocol):
    """Releases answers once the store keeps its promise (GroupCommit)."""

    def appended(self) -> None:
        """Schedules a write of appended records."""

    def after_durable(
        self, position: int, connection: Connection, request: Answerable, header: CommandHeader | None = None, body: bytes = b""
    ) -> None:
        """Answers the request with SUCCESS once everything before the position is durable."""


class SystemTopics(Protocol):
    """Creates the broker's own topics (TopicTable)."""

    def internal(self, topic: str, queue_nums: int) -> object:
        """Returns a topic that only the broker itself reads, and creates it if it is missing."""

    def read_by_others(self, topic: str, queue_nums: int) -> object:
        """Returns a topic that others read, and creates it if it is missing. Raises StoreUnwritable."""
