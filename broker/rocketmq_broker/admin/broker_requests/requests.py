"""Sends requests to a broker. Raises an error if the broker refuses a request."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from rocketmq_broker.admin.errors import CannotAsk, NotSupported, Refused
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.message.errors import CorruptRecord
from rocketmq_broker.message.ids import MessageId
from rocketmq_broker.message.record import Record, decode_record, decode_records
from rocketmq_broker.message.times import FOREVER_MS
from rocketmq_broker.protocol import pull_sysflag
from rocketmq_broker.protocol.bodies.parked_admin import MarkInfo, MarkList, ParkedCounts
from rocketmq_broker.protocol.bodies.topic import TopicConfigSerializeWrapper
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo, TransactionList
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.command_header import CommandHeader
from rocketmq_broker.protocol.errors import ProtocolError
from rocketmq_broker.protocol.headers.parked_admin import (
    DismissDeadLetterRequestHeader,
    ListMarksRequestHeader,
    RetryDeadLetterRequestHeader,
)
from rocketmq_broker.protocol.headers.pull import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
)
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rocketmq_broker.protocol.headers.topic import QueryMessageRequestHeader, ViewMessageRequestHeader
from rocketmq_broker.protocol.headers.transaction import ResumeCheckHalfMessageRequestHeader
from rocketmq_broker.protocol.headers.transaction_admin import (
    DecideTransactionRequestHeader,
    ListDecidedTransactionsRequestHeader,
    ListPendingTransactionsRequestHeader,
    ShowTransactionRequestHeader,
)
from rocketmq_broker.remoting.client import RemotingClient
from rocketmq_broker.remoting.errors import RemotingError

TIMEOUT_MS: Final = 5000
TOOLS_GROUP: Final = "TOOLS_CONSUMER"
"""The consumer group of RocketMQ's own tools, which exists on every broker."""

_FIND_ALL: Final = 64

T = TypeVar("T")


class BrokerRequests:
    """Sends requests to one broker. All methods raise CannotAsk or Refused."""

    def __init__(self, remoting: RemotingClient, address: str) -> None:
        self.address = address
        self._remoting = remoting

    async def list_pending(self, header: ListPendingTransactionsRequestHeader) -> TransactionList:
        """Returns a page of pending transactions."""
        return await self.ask_for(TransactionList.decode, AdminRequestCode.LIST_PENDING_TRANSACTIONS, header)

    async def show(self, header: ShowTransactionRequestHeader) -> TransactionList:
        """Returns the transactions that match an id, key or half offset."""
        return await self.ask_for(TransactionList.decode, AdminRequestCode.SHOW_TRANSACTION, header)

    async def decide(self, header: DecideTransactionRequestHeader) -> TransactionInfo:
        """Commits or rolls back a transaction. The decision is durable on return."""
        return self._one((await self.ask_for(TransactionList.decode, AdminRequestCode.DECIDE_TRANSACTION, header)).transactions)

    async def list_decided(self, header: ListDecidedTransactionsRequestHeader) -> TransactionList:
        """Returns the transactions decided by hand, latest first."""
        return await self.ask_for(TransactionList.decode, AdminRequestCode.LIST_DECIDED_TRANSACTIONS, header)

    async def resume(self, message_id: str) -> None:
        """Resumes the check-backs of a discarded message. Apache's brokers support this request, too."""
        await self.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, ResumeCheckHalfMessageRequestHeader(msg_id=message_id))

    async def count_parked(self) -> ParkedCounts:
        """Returns the number of dead letters and the number of discarded messages that no operator has handled yet."""
        return await self.ask_for(ParkedCounts.decode, AdminRequestCode.COUNT_PARKED_MESSAGES)

    async def marks(self, header: ListMarksRequestHeader) -> list[MarkInfo]:
        """Returns the marks of parked messages, which record how operators treated them."""
        return (await self.ask_for(MarkList.decode, AdminRequestCode.LIST_MARKS, header)).marks

    async def retry(self, header: RetryDeadLetterRequestHeader) -> MarkInfo:
        """Delivers a dead letter to its group once more. The redelivered message is durable on return."""
        return self._one((await self.ask_for(MarkList.decode, AdminRequestCode.RETRY_DEAD_LETTER, header)).marks)

    async def dismiss(self, header: DismissDeadLetterRequestHeader) -> MarkInfo:
        """Marks a dead letter as dismissed. The change is durable on return."""
        return self._one((await self.ask_for(MarkList.decode, AdminRequestCode.DISMISS_DEAD_LETTER, header)).marks)

    async def send(self, header: SendMessageRequestHeaderV2, body: bytes) -> SendMessageResponseHeader:
        """Stores a message. Returns its position."""
        stored = ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.FLUSH_SLAVE_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE
        answer = await self.ask(RequestCode.SEND_MESSAGE_V2, header, *stored, body=body)
        with decoding_answer_of(self.address):
            return answer.decode_header(SendMessageResponseHeader)

    async def topics(self) -> dict[str, int]:
        """Returns the broker's topics, each with its number of read queues."""
        return {name: config.read_queue_nums for name, config in (await self.topic_configs()).items()}

    async def topic_configs(self) -> dict[str, TopicConfig]:
        """Returns the broker's topics, each with its settings."""
        return (await self.ask_for(TopicConfigSerializeWrapper.decode, RequestCode.GET_ALL_TOPIC_CONFIG)).topic_config_table

    async def offsets(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Returns the queue offset of the first message, and the offset after the last message."""
        first = await self.ask(RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader(topic=topic, queue_id=queue_id))
        end = await self.ask(RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(topic=topic, queue_id=queue_id))
        with decoding_answer_of(self.address):
            first_offset = max(0, first.decode_header(GetMinOffsetResponseHeader).offset)
            return first_offset, max(first_offset, end.decode_header(GetMaxOffsetResponseHeader).offset)

    async def pull(self, topic: str, queue_id: int, queue_offset: int, count: int) -> tuple[list[Record], int]:
        """Returns messages starting at a queue offset, and the next offset to pull.

        Returns no messages if the queue or topic does not exist.
        """
        header = PullMessageRequestHeader(
            consumer_group=TOOLS_GROUP,
            topic=topic,
            queue_id=queue_id,
            queue_offset=queue_offset,
            max_msg_nums=count,
            sys_flag=pull_sysflag.SUBSCRIPTION,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            sub_version=0,
        )
        answer = await self.ask(
            RequestCode.PULL_MESSAGE,
            header,
            ResponseCode.PULL_NOT_FOUND,
            ResponseCode.PULL_RETRY_IMMEDIATELY,
            ResponseCode.PULL_OFFSET_MOVED,
            ResponseCode.TOPIC_NOT_EXIST,
        )
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            return [], queue_offset
        with decoding_answer_of(self.address):
            next_offset = answer.decode_header(PullMessageResponseHeader).next_begin_offset
            return decode_records(answer.body) if answer.code == ResponseCode.SUCCESS else [], next_offset

    async def query(self, topic: str, key: str) -> list[Record]:
        """Returns the messages of a topic with this key or unique id. System topics can be queried, too."""
        header = QueryMessageRequestHeader(topic=topic, key=key, max_num=_FIND_ALL, begin_timestamp=0, end_timestamp=FOREVER_MS)
        answer = await self.ask(RequestCode.QUERY_MESSAGE, header, ResponseCode.QUERY_NOT_FOUND)
        with decoding_answer_of(self.address):
            return decode_records(answer.body) if answer.code == ResponseCode.SUCCESS else []

    async def view(self, commit_log_offset: int) -> Record:
        """Returns the message at a commit log offset, regardless of its topic."""
        data = await self.view_bytes(commit_log_offset)
        with decoding_answer_of(self.address):
            return decode_record(data)

    async def view_bytes(self, commit_log_offset: int) -> bytes:
        """Returns the bytes of the record at a commit log offset, without verification."""
        header = ViewMessageRequestHeader(offset=commit_log_offset)
        return (await self.ask(RequestCode.VIEW_MESSAGE_BY_ID, header)).body

    def _one(self, entries: list[T]) -> T:
        if not entries:
            raise CannotAsk(f"broker {self.address} returned an empty list: the result of the request is unknown")
        return entries[0]

    async def ask_for(self, decode: Callable[[bytes], T], code: int, header: CommandHeader | None = None) -> T:
        """Sends a request. Returns the decoded body of the response."""
        answer = await self.ask(code, header)
        with decoding_answer_of(self.address):
            return decode(answer.body)

    async def ask(self, code: int, header: CommandHeader | None, *accepted: ResponseCode, body: bytes = b"") -> RemotingCommand:
        """Sends a request. Returns the response if its code is SUCCESS or one of `accepted`, and raises an error otherwise."""
        try:
            answer = await self._remoting.invoke(self.address, code, header, body, timeout_ms=TIMEOUT_MS)
        except RemotingError as error:
            raise CannotAsk(f"broker {self.address}: {error}") from error
        if answer.code == ResponseCode.SUCCESS or answer.code in accepted:
            return answer
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise NotSupported(
                f"broker {self.address} does not support this request ({code}): it is not part of Apache RocketMQ; "
                "Apache's brokers support `discarded`, `resume`, and `dead-letters list`, `show` and `retry`"
            )
        raise Refused(f"broker {self.address}: {_first_line(answer.remark) or f'error code {answer.code}'}")


def is_stored_at(message_id: MessageId, address: str) -> bool:
    """Returns whether an offset message id contains the broker's address."""
    return f"{message_id.host}:{message_id.port}" == address


@contextmanager
def decoding_answer_of(address: str) -> Iterator[None]:
    """Raises CannotAsk if the block fails to decode a response from the broker at `address`."""
    try:
        yield
    except (ProtocolError, CorruptRecord, ValueError) as error:
        raise CannotAsk(f"broker {address} sent an invalid response: {error}") from None


def _first_line(remark: str | None) -> str:
    return (remark or "").strip().partition("\n")[0]
