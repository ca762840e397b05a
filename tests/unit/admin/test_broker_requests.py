"""Tests the requests of the operators' tool to one broker, and the texts for its responses and refusals."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rocketmq_broker.admin.broker_requests.queue_pages import pages
from rocketmq_broker.admin.broker_requests.requests import TOOLS_GROUP, BrokerRequests, is_stored_at
from rocketmq_broker.admin.errors import CannotAsk, NotSupported, Refused
from rocketmq_broker.message.configs import TopicConfig
from rocketmq_broker.message.ids import parse_offset_message_id
from rocketmq_broker.message.record import body_crc
from rocketmq_broker.protocol import pull_sysflag
from rocketmq_broker.protocol.bodies.parked_admin import MarkInfo, MarkList, ParkedCounts
from rocketmq_broker.protocol.bodies.topic import TopicConfigSerializeWrapper
from rocketmq_broker.protocol.bodies.transaction_admin import TransactionInfo, TransactionList
from rocketmq_broker.protocol.codes import AdminRequestCode, RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.parked_admin import (
    DismissDeadLetterRequestHeader,
    ListMarksRequestHeader,
    RetryDeadLetterRequestHeader,
)
from rocketmq_broker.protocol.headers.pull import (
    GetMaxOffsetResponseHeader,
    GetMinOffsetResponseHeader,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
)
from rocketmq_broker.protocol.headers.topic import QueryMessageRequestHeader
from rocketmq_broker.protocol.headers.transaction import ResumeCheckHalfMessageRequestHeader
from rocketmq_broker.protocol.headers.transaction_admin import (
    DecideTransactionRequestHeader,
    ListDecidedTransactionsRequestHeader,
    ListPendingTransactionsRequestHeader,
    ShowTransactionRequestHeader,
)
from rocketmq_broker.remoting.errors import RemotingTimeout
from tests.stored_records import encoded
from tests.unit.client.peers import Peer, Peers, answer, success

DECISION = DecideTransactionRequestHeader(transaction_id="T", commit=True, reason="by hand")
PULLED = PullMessageResponseHeader(suggest_which_broker_id=0, next_begin_offset=9, min_offset=0, max_offset=9)

Ask = Callable[[BrokerRequests], Awaitable[Any]]

QUESTIONS: dict[str, Ask] = {
    "list_pending": lambda broker: broker.list_pending(ListPendingTransactionsRequestHeader()),
    "show": lambda broker: broker.show(ShowTransactionRequestHeader(key="k")),
    "decide": lambda broker: broker.decide(DECISION),
    "list_decided": lambda broker: broker.list_decided(ListDecidedTransactionsRequestHeader()),
    "resume": lambda broker: broker.resume("ID"),
    "count_parked": lambda broker: broker.count_parked(),
    "marks": lambda broker: broker.marks(ListMarksRequestHeader(topic="t", queue_id=0, queue_offset=0)),
    "retry": lambda broker: broker.retry(RetryDeadLetterRequestHeader(offset=1)),
    "dismiss": lambda broker: broker.dismiss(DismissDeadLetterRequestHeader(offset=1, reason="r")),
    "topics": lambda broker: broker.topics(),
    "offsets": lambda broker: broker.offsets("t", 0),
    "pull": lambda broker: broker.pull("t", 0, 0, 1),
    "query": lambda broker: broker.query("t", "k"),
    "view": lambda broker: broker.view(1),
}
UNDERSTANDS_NOTHING_OF_THE_ANSWER = {"resume"}

every_question = pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)


def broker_that(peer: Peer) -> tuple[BrokerRequests, Peers]:
    peers = Peers(a=peer)
    return BrokerRequests(peers.as_remoting(), "a:1"), peers


def a_record(queue_offset: int = 0) -> bytes:
    return encoded("t", b"x", queue_offset=queue_offset, commit_log_offset=queue_offset * 100, crc=body_crc(b"x"))


@every_question
async def test_a_refusal_names_the_broker_and_its_reason_in_one_line(ask: Ask) -> None:
    broker, _ = broker_that(lambda request: answer(ResponseCode.SYSTEM_ERROR, remark="the disk is full\nat Store.java:7"))
    with pytest.raises(Refused, match=r"^broker a:1: the disk is full$"):
        await ask(broker)


@every_question
async def test_a_refusal_without_words_has_at_least_its_code(ask: Ask) -> None:
    broker, _ = broker_that(lambda request: answer(ResponseCode.SYSTEM_BUSY))
    with pytest.raises(Refused, match=r"^broker a:1: error code 2$"):
        await ask(broker)


@every_question
async def test_a_broker_that_is_away_or_silent_cannot_be_asked(ask: Ask) -> None:
    with pytest.raises(CannotAsk, match=r"^broker b:1: no connection to b:1: Connection refused$"):
        await ask(BrokerRequests(Peers().as_remoting(), "b:1"))
    broker, _ = broker_that(lambda request: RemotingTimeout("no answer from a:1 in time"))
    with pytest.raises(CannotAsk, match=r"^broker a:1: no answer from a:1 in time$"):
        await ask(broker)


@every_question
async def test_apaches_broker_is_told_from_one_that_refuses(ask: Ask) -> None:
    broker, _ = broker_that(lambda request: answer(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=" not supported"))
    with pytest.raises(NotSupported, match=r"broker a:1 does not support this request .*it is not part of Apache RocketMQ"):
        await ask(broker)


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name not in UNDERSTANDS_NOTHING_OF_THE_ANSWER])
async def test_an_answer_that_makes_no_sense_is_no_answer(name: str) -> None:
    broker, _ = broker_that(lambda request: success(body=b"<html>"))
    with pytest.raises(CannotAsk, match="broker a:1 sent an invalid response"):
        await QUESTIONS[name](broker)


@pytest.mark.parametrize("name", ["decide", "retry", "dismiss"])
async def test_a_broker_that_does_not_say_what_it_did_is_not_believed(name: str) -> None:
    broker, _ = broker_that(lambda request: success(body=b"{}"))
    with pytest.raises(CannotAsk, match="returned an empty list: the result of the request is unknown"):
        await QUESTIONS[name](broker)


async def test_transactions_come_as_the_broker_lists_them() -> None:
    listed = TransactionList(transactions=[TransactionInfo("pending", 7)], total=9, next_after=7)
    broker, peers = broker_that(lambda request: success(body=listed.encode()))
    assert await broker.list_pending(ListPendingTransactionsRequestHeader(topic="orders")) == listed
    assert await broker.show(ShowTransactionRequestHeader(half_offset=7)) == listed
    assert await broker.list_decided(ListDecidedTransactionsRequestHeader()) == listed
    assert await broker.decide(DECISION) == listed.transactions[0]
    assert peers.codes == [
        AdminRequestCode.LIST_PENDING_TRANSACTIONS,
        AdminRequestCode.SHOW_TRANSACTION,
        AdminRequestCode.LIST_DECIDED_TRANSACTIONS,
        AdminRequestCode.DECIDE_TRANSACTION,
    ]
    assert peers.asked[0].command.decode_header(ListPendingTransactionsRequestHeader).topic == "orders"
    assert peers.asked[3].command.decode_header(DecideTransactionRequestHeader) == DECISION


async def test_marks_come_as_the_broker_keeps_them() -> None:
    mark = MarkInfo(queue_offset=3, treatment="retried", at_ms=5, by="127.0.0.1:9", retries=1)
    broker, _ = broker_that(lambda request: success(body=MarkList(marks=[mark]).encode()))
    assert await broker.marks(ListMarksRequestHeader(topic="t", queue_id=0, queue_offset=3)) == [mark]
    assert await broker.retry(RetryDeadLetterRequestHeader(offset=300)) == mark
    assert await broker.dismiss(DismissDeadLetterRequestHeader(offset=300, reason="test order")) == mark


async def test_what_waits_for_a_person_is_counted_by_group() -> None:
    counts = ParkedCounts(dead_letters={"g": 2}, discarded={"p": 1})
    broker, _ = broker_that(lambda request: success(body=counts.encode()))
    assert await broker.count_parked() == counts


async def test_topics_are_told_with_the_queues_to_read() -> None:
    table = {"orders": TopicConfig("orders", read_queue_nums=3, write_queue_nums=5)}
    broker, _ = broker_that(lambda request: success(body=TopicConfigSerializeWrapper(topic_config_table=table).encode()))
    assert await broker.topics() == {"orders": 3}


@pytest.mark.parametrize(("first", "end", "told"), [(0, 5, (0, 5)), (-1, 0, (0, 0)), (7, 3, (7, 7))])
async def test_a_queue_that_is_empty_or_not_there_has_no_length_below_zero(first: int, end: int, told: tuple[int, int]) -> None:
    def peer(request: RemotingCommand) -> bytes:
        is_first = request.code == RequestCode.GET_MIN_OFFSET
        return success(GetMinOffsetResponseHeader(offset=first) if is_first else GetMaxOffsetResponseHeader(offset=end))

    broker, _ = broker_that(peer)
    assert await broker.offsets("t", 0) == told


async def test_a_pull_is_a_tools_own_and_waits_for_nothing() -> None:
    broker, peers = broker_that(lambda request: success(PULLED, a_record(7) + a_record(8)))
    records, next_offset = await broker.pull("t", 2, 7, 32)
    assert ([record.queue_offset for record in records], next_offset) == ([7, 8], 9)
    header = peers.asked[0].command.decode_header(PullMessageRequestHeader)
    assert (header.consumer_group, header.queue_id, header.queue_offset, header.max_msg_nums) == (TOOLS_GROUP, 2, 7, 32)
    assert (header.sys_flag, header.subscription, header.suspend_timeout_millis) == (pull_sysflag.SUBSCRIPTION, "*", 0)


@pytest.mark.parametrize(
    "code", [ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_RETRY_IMMEDIATELY, ResponseCode.PULL_OFFSET_MOVED]
)
async def test_a_pull_that_finds_nothing_says_where_to_go_on(code: ResponseCode) -> None:
    broker, _ = broker_that(lambda request: answer(code, PULLED))
    assert await broker.pull("t", 0, 3, 32) == ([], 9)


async def test_a_topic_that_is_not_there_yet_is_empty() -> None:
    broker, _ = broker_that(lambda request: answer(ResponseCode.TOPIC_NOT_EXIST, remark="no such topic"))
    assert await broker.pull("t", 0, 3, 32) == ([], 3)


async def test_a_key_is_looked_for_at_all_times() -> None:
    broker, peers = broker_that(lambda request: success(body=a_record()))
    (record,) = await broker.query("t", "order-1")
    header = peers.asked[0].command.decode_header(QueryMessageRequestHeader)
    assert (record.body, header.key, header.begin_timestamp) == (b"x", "order-1", 0)
    assert header.end_timestamp > 2**60


async def test_a_key_that_no_message_has_is_no_error() -> None:
    broker, _ = broker_that(lambda request: answer(ResponseCode.QUERY_NOT_FOUND, remark="can not find message"))
    assert await broker.query("t", "order-1") == []


async def test_a_message_is_seen_by_its_offset_and_resumed_by_its_id() -> None:
    broker, peers = broker_that(lambda request: success(body=a_record()))
    assert (await broker.view(100)).body == b"x"
    await broker.resume("ID")
    assert peers.asked[1].command.decode_header(ResumeCheckHalfMessageRequestHeader).msg_id == "ID"


def test_an_offset_message_id_names_the_broker_that_stores_it() -> None:
    message_id = parse_offset_message_id("7F00000100002A9F0000000000000064")
    assert is_stored_at(message_id, "127.0.0.1:10911")
    assert not is_stored_at(message_id, "127.0.0.1:10912")


class Queue:
    """A queue of messages from offset `first` up to `end`. A pull returns at most three messages."""

    def __init__(self, first: int, end: int, *, stuck_at: int | None = None) -> None:
        self.first = first
        self.end = end
        self.stuck_at = stuck_at

    def __call__(self, request: RemotingCommand) -> bytes:
        if request.code == RequestCode.GET_MIN_OFFSET:
            return success(GetMinOffsetResponseHeader(offset=self.first))
        if request.code == RequestCode.GET_MAX_OFFSET:
            return success(GetMaxOffsetResponseHeader(offset=self.end))
        begin = request.decode_header(PullMessageRequestHeader).queue_offset
        end = begin if begin == self.stuck_at else min(begin + 3, self.end)
        header = PullMessageResponseHeader(suggest_which_broker_id=0, next_begin_offset=end, min_offset=0, max_offset=self.end)
        return success(header, b"".join(a_record(offset) for offset in range(begin, end)))


@pytest.mark.parametrize("count", [0, 1, 3, 31, 32, 33, 100])
@pytest.mark.parametrize("newest_first", [False, True])
async def test_a_queue_is_read_whole_from_either_end(count: int, newest_first: bool) -> None:
    broker, _ = broker_that(Queue(5, 5 + count))
    found = [record.queue_offset async for page in pages(broker, "t", newest_first=newest_first) for record in page]
    expected = list(range(5, 5 + count))
    assert found == (expected[::-1] if newest_first else expected)


async def test_a_broker_that_does_not_get_on_does_not_hold_the_tool_for_ever() -> None:
    broker, _ = broker_that(Queue(0, 10, stuck_at=3))
    found = [record.queue_offset async for page in pages(broker, "t", newest_first=False) for record in page]
    assert found == [0, 1, 2]
