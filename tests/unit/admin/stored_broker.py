"""A broker in memory, which answers the tool's requests from its records."""

from typing import Any, cast

from rocketmq_broker.admin.errors import Refused
from rocketmq_broker.admin.session import Session
from rocketmq_broker.message.record import Record


class StoredBroker:
    """A broker with these records. A pull returns at most three of them."""

    def __init__(self, *records: Record, address: str = "127.0.0.1:1") -> None:
        self.address = address
        self.records = list(records)
        self.pulls = 0

    async def offsets(self, topic: str, queue_id: int) -> tuple[int, int]:
        offsets = [record.queue_offset for record in self.of_topic(topic)]
        return min(offsets, default=0), max(offsets, default=-1) + 1

    async def pull(self, topic: str, queue_id: int, queue_offset: int, count: int) -> tuple[list[Record], int]:
        self.pulls += 1
        wanted = range(queue_offset, queue_offset + min(count, 3))
        page = [record for record in self.of_topic(topic) if record.queue_offset in wanted]
        return page, queue_offset + len(page)

    async def query(self, topic: str, key: str) -> list[Record]:
        return [
            record for record in self.of_topic(topic) if key in (record.get_property("UNIQ_KEY"), record.get_property("KEYS"))
        ]

    async def view(self, commit_log_offset: int) -> Record:
        for record in self.records:
            if record.commit_log_offset == commit_log_offset:
                return record
        raise Refused(f"no message at commit log offset {commit_log_offset}")

    def of_topic(self, topic: str) -> list[Record]:
        return [record for record in self.records if record.topic.decode() == topic]


def session(*brokers: StoredBroker) -> Session:
    return Session(cast(Any, list(brokers)))
