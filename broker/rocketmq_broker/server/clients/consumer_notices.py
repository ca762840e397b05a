"""Telling consumers that their group changed (the notifying half of RocketMQ's DefaultConsumerIdsChangeListener)."""

from __future__ import annotations

from typing import Final

from rocketmq_broker.protocol.codes import RequestCode
from rocketmq_broker.protocol.headers import NotifyConsumerIdsChangedRequestHeader
from rocketmq_broker.remoting.alarm import Alarm
from rocketmq_broker.remoting.connection import Connection

REST_S: Final = 0.1
"""Between two rounds: all changes of this time are told at once."""
MOST_AT_ONCE: Final = 500
"""Notices of one round: some 10 ms of the event loop. A group of a thousand hears of a change in two rounds."""


class ConsumerNotices:
    """Sends NOTIFY_CONSUMER_IDS_CHANGED: a group's queues have to be divided anew.

    When a thousand members come one after the other, as after a restart, each change would be told to all of them: a million
    notices. So a member that waits to be told is told once, however often its group changes meanwhile.
    """

    def __init__(self) -> None:
        self.alarm = Alarm()
        """Rings when somebody is to be told."""
        self._due: dict[tuple[str, Connection], None] = {}

    def group_changed(self, group: str, connections: list[Connection]) -> None:
        """The members of the group will be told."""
        self._due.update(dict.fromkeys((group, connection) for connection in connections))
        self.alarm.ring()

    def tell(self) -> float | None:
        """Tells those who wait longest. Returns 0 if others wait still, None if nobody does."""
        for group, connection in list(self._due)[:MOST_AT_ONCE]:
            del self._due[group, connection]
            if connection.is_writable:
                header = NotifyConsumerIdsChangedRequestHeader(consumer_group=group)
                connection.invoke_oneway(RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, header)
        return 0 if self._due else None
