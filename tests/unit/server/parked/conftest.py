"""Fixtures for a broker that parks messages, and for an operator's requests about them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

import pytest

from rocketmq_broker.message.properties import encode
from rocketmq_broker.message.record import Record
from rocketmq_broker.protocol.bodies.parked_admin import MarkInfo, MarkList, ParkedCounts
from rocketmq_broker.protocol.body import Body
from rocketmq_broker.protocol.codes import AdminRequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.headers.parked_admin import (
    DismissDeadLetterRequestHeader,
    ListMarksRequestHeader,
    RetryDeadLetterRequestHeader,
)
from rocketmq_broker.server.durability.arrivals import Arrivals
from rocketmq_broker.server.parked import ParkedMessages
from rocketmq_broker.server.parked.dead_letter_processor import DeadLetterProcessor
from tests.unit.server.conftest import Desk, Wire
from tests.unit.store.conftest import append

DLQ = "%DLQ%credits"
DISCARD_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
OF_THE_FIRST_ATTEMPT = {"UNIQ_KEY": "A1", "KEYS": "order-1", "TAGS": "created", "RETRY_TOPIC": "orders", "TRAN_MSG": "true"}

AnyBody = TypeVar("AnyBody", bound=Body)


@dataclass
class Parking:
    """The processors of a broker, and its parked messages."""

    desk: Desk
    parked: ParkedMessages = field(init=False)

    def __post_init__(self) -> None:
        self.parked = ParkedMessages(self.desk.store, self.desk.topics)
        self.parked.load()
        self.desk.store.arrival_listener = Arrivals(self.parked.on_arrival, counter=lambda *arrival: None)
        processor = DeadLetterProcessor(
            parked=self.parked,
            store=self.desk.store,
            group_commit=self.desk.commit,
            topic_table=self.desk.topics,
            subscription_groups=self.desk.groups,
            clock=self.desk.clock,
            random=Random(1),
        )
        self.desk.dispatcher.add(processor.handlers)

    def park(self, topic: str = DLQ, body: bytes = b"order", settle: bool = True, **properties: str) -> None:
        """Appends a message to a queue of parked messages."""
        own = encode({**OF_THE_FIRST_ATTEMPT, **properties})
        fields = {"flag": 7, "sys_flag": 8, "born_timestamp": 4711, "reconsume_times": 16}
        append(self.desk.store, body, topic=topic.encode(), properties=own, store_timestamp=self.desk.clock(), **fields)
        if settle:
            self.settle()

    def settle(self) -> None:
        self.desk.commit.settle()
        while self.parked.read_arrived() is not None:
            pass

    def letters(self) -> list[Record]:
        return self.desk.messages(DLQ)

    def ask(self, code: AdminRequestCode, header: CommandHeader | None, body_type: type[AnyBody]) -> AnyBody:
        answer = self.desk.ask(code, header)
        self.settle()
        assert answer.code == ResponseCode.SUCCESS, answer.remark
        return body_type.decode(answer.body)

    def refused(self, code: AdminRequestCode, header: CommandHeader) -> str:
        answer: RemotingCommand = self.desk.ask(code, header)
        self.settle()
        assert answer.code != ResponseCode.SUCCESS
        return answer.remark or ""

    def retry(self, offset: int, *, again: bool = False, reason: str = "") -> MarkInfo:
        header = RetryDeadLetterRequestHeader(offset, again, reason)
        (mark,) = self.ask(AdminRequestCode.RETRY_DEAD_LETTER, header, MarkList).marks
        return mark

    def dismiss(self, offset: int, reason: str) -> MarkInfo:
        header = DismissDeadLetterRequestHeader(offset, reason)
        (mark,) = self.ask(AdminRequestCode.DISMISS_DEAD_LETTER, header, MarkList).marks
        return mark

    def marks(self, queue_offset: int, *, count: int = 1, history: bool = False) -> list[MarkInfo]:
        header = ListMarksRequestHeader(DLQ, 0, queue_offset, count, history)
        return self.ask(AdminRequestCode.LIST_MARKS, header, MarkList).marks

    def counts(self) -> ParkedCounts:
        return self.ask(AdminRequestCode.COUNT_PARKED_MESSAGES, None, ParkedCounts)

    def request_without_settling(self, code: AdminRequestCode, header: CommandHeader) -> None:
        self.desk.commit.is_held_up = True
        self.desk.request(Wire(), code, header)
        self.desk.commit.is_held_up = False


@pytest.fixture
def parking(desk: Desk) -> Parking:
    return Parking(desk)


@pytest.fixture
def restarted(make_desk: Callable[..., Desk]) -> Callable[[Parking], Parking]:
    """Returns a function that closes a broker's store and opens it again."""

    def restart(before: Parking) -> Parking:
        before.desk.store.close()
        return Parking(make_desk())

    return restart


async def rings(parked: ParkedMessages) -> None:
    """Waits until the alarm has rung."""
    async with asyncio.timeout(30):
        await parked.alarm.wait(None)
