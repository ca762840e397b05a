"""Reads transactions and messages from a broker for a test, without a connection."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from rocketmq_broker.message import MessageExt, topics
from rocketmq_broker.message.record import Record, decode_records, to_message
from rocketmq_broker.protocol.bodies.group import ConsumerConnection, ConsumeStats, ProducerConnection
from rocketmq_broker.protocol.bodies.heartbeat import MessageModel
from rocketmq_broker.protocol.bodies.topic import TopicConfigSerializeWrapper
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo, TransactionList
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand, encode_request
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.frame import FrameDecoder
from rocketmq_broker.protocol.headers.group import (
    GetConsumerConnectionListRequestHeader,
    GetConsumeStatsRequestHeader,
    GetProducerConnectionListRequestHeader,
)
from rocketmq_broker.protocol.headers.pull import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
)
from rocketmq_broker.protocol.headers.transaction_admin import ListPendingTransactionsRequestHeader, ShowTransactionRequestHeader
from rocketmq_broker.remoting.connections.connection import Connection, RequestHandler

PENDING: Final = "pending"
COMMITTED: Final = "committed"
ROLLED_BACK: Final = "rolled back"
DISCARDED: Final = "discarded"
_GROUP: Final = "TOOLS_CONSUMER"
_SUBSCRIPTION: Final = 0x4
_MANY: Final = 1000


@dataclass(frozen=True, slots=True)
class Transaction:
    """A transaction and its state."""

    state: str
    """`pending`, `committed`, `rolled back` or `discarded`."""
    transaction_id: str
    topic: str
    keys: tuple[str, ...]
    producer_group: str
    checks: int
    """The number of check-backs sent so far; 0 for a rolled back transaction, because no record stores the number."""
    next_check_in_s: float | None
    """The seconds until the next check; None once the transaction is decided."""

    def is_named(self, word: str) -> bool:
        """Returns whether the word is the transaction's id or one of its keys."""
        return word == self.transaction_id or word in self.keys


class Inspection:
    """Reads the broker's state with admin requests, to which the broker responds immediately."""

    def __init__(self, broker: RequestHandler, broker_name: str) -> None:
        """Creates an inspection of the broker `broker_name`. `broker` handles the requests."""
        self._broker = broker
        self._broker_name = broker_name

    def pending(self) -> list[Transaction]:
        """Returns the undecided transactions, oldest first."""
        header = ListPendingTransactionsRequestHeader(max_count=_MANY)
        return [_transaction(info) for info in self._list(AdminRequestCode.LIST_PENDING_TRANSACTIONS, header)]

    def transactions(self) -> list[Transaction]:
        """Returns all transactions whose half messages are in the store, oldest first."""
        found: dict[int, TransactionInfo] = {}
        for half in self.queue(topics.HALF_TOPIC, 0):
            header = ShowTransactionRequestHeader(half_offset=half.commit_log_offset)
            found |= {info.half_offset: info for info in self._list(AdminRequestCode.SHOW_TRANSACTION, header)}
        return [_transaction(found[offset]) for offset in sorted(found)]

    def half_message(self, commit_log_offset: int) -> Record | None:
        """Returns the half message at a commit log offset, whether pending or decided."""
        return next((half for half in self._records(topics.HALF_TOPIC, 0) if half.commit_log_offset == commit_log_offset), None)

    def is_decided(self, commit_log_offset: int) -> bool:
        """Returns whether the half message at a commit log offset is committed, rolled back or discarded."""
        return any(info.state != PENDING for info in self._transaction_at(commit_log_offset))

    def next_check_in_s(self, commit_log_offset: int) -> float | None:
        """Returns the seconds until the next check of the half message's transaction, or None if it is not pending."""
        return next((_transaction(info).next_check_in_s for info in self._transaction_at(commit_log_offset)), None)

    def producers(self, group: str) -> list[str]:
        """Returns the addresses of the group's online producers."""
        answer = self.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, GetProducerConnectionListRequestHeader(producer_group=group))
        if answer.code != ResponseCode.SUCCESS:
            return []
        return [member.client_addr for member in ProducerConnection.decode(answer.body).connection_set]

    def topics(self) -> dict[str, int]:
        """Returns the topics with their numbers of read queues."""
        answer = self.ask(RequestCode.GET_ALL_TOPIC_CONFIG, None)
        table = TopicConfigSerializeWrapper.decode(answer.body).topic_config_table
        return {name: config.read_queue_nums for name, config in table.items()}

    def messages(self, topic: str) -> list[MessageExt]:
        """Returns the messages of the topic, in the order in which they were stored."""
        count = self.topics().get(topic, 0)
        found = [message for queue_id in range(count) for message in self.queue(topic, queue_id)]
        return sorted(found, key=lambda message: message.commit_log_offset)

    def subscriptions(self, group: str) -> list[str]:
        """Returns the topics to which online members of the group subscribe. The list is empty for a broadcasting group."""
        answer = self.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, GetConsumerConnectionListRequestHeader(consumer_group=group))
        if answer.code != ResponseCode.SUCCESS:
            return []
        online = ConsumerConnection.decode(answer.body)
        return [] if online.message_model is MessageModel.BROADCASTING else sorted(online.subscription_table)

    def count_unhandled(self, group: str, topic: str | None = None) -> int:
        """Returns the number of messages that the group has not consumed.

        Counts the messages of `topic`. Without `topic`, counts those of all topics for which the group has offsets.
        """
        header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)
        stats = ConsumeStats.decode(self.ask(RequestCode.GET_CONSUME_STATS, header).body)
        return sum(offsets.broker_offset - offsets.consumer_offset for offsets in stats.offset_table.values())

    def count_delayed(self) -> int:
        """Returns the number of delayed messages that are not delivered yet."""
        answer = self.ask(RequestCode.GET_ALL_DELAY_OFFSET, None)
        delivered = {int(level): int(offset) for level, offset in re.findall(rb"(\d+):(\d+)", answer.body)}
        return sum(self._end_of_delay(level) - offset for level, offset in delivered.items())

    def queue(self, topic: str, queue_id: int) -> Iterator[MessageExt]:
        """Yields the messages of one queue."""
        return (to_message(record, self._broker_name) for record in self._records(topic, queue_id))

    def ask(self, code: int, header: CommandHeader | None) -> RemotingCommand:
        """Returns the broker's response to a request. Raises RuntimeError if the broker does not respond immediately."""
        asker = _Asker()
        (request,) = FrameDecoder().feed(encode_request(code, header, opaque=0))
        self._broker.on_requests(cast(Connection, asker), [request])
        if asker.answer is None:
            raise RuntimeError(f"the broker did not respond to request {code} immediately")
        (answer,) = FrameDecoder().feed(asker.answer)
        return answer

    def _records(self, topic: str, queue_id: int) -> Iterator[Record]:
        first = self.ask(RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader(topic=topic, queue_id=queue_id))
        offset = max(0, first.decode_header(GetMinOffsetResponseHeader).offset)
        while True:
            answer = self.ask(RequestCode.PULL_MESSAGE, _pull(topic, queue_id, offset))
            if answer.code != ResponseCode.SUCCESS:
                return
            yield from decode_records(answer.body)
            offset = answer.decode_header(PullMessageResponseHeader).next_begin_offset

    def _end_of_delay(self, level: int) -> int:
        header = GetMaxOffsetRequestHeader(topic=topics.SCHEDULE_TOPIC, queue_id=level - 1)
        return self.ask(RequestCode.GET_MAX_OFFSET, header).decode_header(GetMaxOffsetResponseHeader).offset

    def _transaction_at(self, commit_log_offset: int) -> list[TransactionInfo]:
        found = self._list(AdminRequestCode.SHOW_TRANSACTION, ShowTransactionRequestHeader(half_offset=commit_log_offset))
        return [info for info in found if info.half_offset == commit_log_offset]

    def _list(self, code: int, header: CommandHeader) -> list[TransactionInfo]:
        return TransactionList.decode(self.ask(code, header).body).transactions


class _Asker:
    """A connection that stores the broker's response."""

    def __init__(self) -> None:
        self.peer = "the test"
        self.peer_ip = "127.0.0.1"
        self.born_host = bytes(8)
        self.must_rest = False
        self.is_open = self.is_writable = True
        self.answer: bytes | None = None

    def send(self, frame: bytes) -> None:
        self.answer = frame

    def postpone(self, requests: list[Any]) -> None:
        """Ignores the requests."""


def _pull(topic: str, queue_id: int, offset: int) -> PullMessageRequestHeader:
    return PullMessageRequestHeader(
        consumer_group=_GROUP, topic=topic, queue_id=queue_id, queue_offset=offset, max_msg_nums=32, sys_flag=_SUBSCRIPTION,
        commit_offset=0, suspend_timeout_millis=0, subscription="*", sub_version=0,
    )  # fmt: skip


def _transaction(info: TransactionInfo) -> Transaction:
    return Transaction(
        state=info.state,
        transaction_id=info.transaction_id or "",
        topic=info.topic,
        keys=tuple(info.keys),
        producer_group=info.producer_group,
        checks=info.checks or 0,
        next_check_in_s=None if info.next_check_in_ms is None else info.next_check_in_ms / 1000,
    )
