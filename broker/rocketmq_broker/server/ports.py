"""Defines protocols for objects of other packages, so that these objects can be used without importing the packages."""

from typing import Protocol

from rocketmq_broker.protocol.command import Answerable
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.remoting.connections.connection import Connection


class Durability(Protocol):
    """Sends responses once the messages are as durable as flushDiskType requires (GroupCommit)."""

    def appended(self) -> None:
        """Schedules a write of the appended records."""

    def after_durable(
        self, position: int, connection: Connection, request: Answerable, header: CommandHeader | None = None, body: bytes = b""
    ) -> None:
        """Responds to the request with SUCCESS once all records before the position are durable."""


class SystemTopics(Protocol):
    """Creates the broker's own topics (TopicTable)."""

    def internal(self, topic: str, queue_nums: int) -> object:
        """Returns a topic that only the broker reads. Creates the topic if it is missing."""

    def read_by_others(self, topic: str, queue_nums: int) -> object:
        """Returns a topic that clients may read. Creates the topic if it is missing. Raises StoreUnwritable."""
