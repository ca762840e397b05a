"""Tests the send request on the wire: the header of a message, and the handling of the response."""

import pytest

from rocketmq_broker.client import BrokerError, MessageQueue, RequestTimedOut, SendStatus, UnreadableAnswer
from rocketmq_broker.client.producer.message_sender import SendRequests
from rocketmq_broker.client.producer.wire_message import WireMessage
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.headers.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from rocketmq_broker.protocol.headers.topic import CreateTopicRequestHeader
from rocketmq_broker.protocol.headers.transaction import EndTransactionRequestHeader
from rocketmq_broker.remoting.errors import RemotingTimeout
from tests.unit.client.peers import Peer, Peers, answer, calls_to, success

QUEUE = MessageQueue("orders", "broker-a", 3)
WIRE = WireMessage("orders", b"body", "KEYS\x01k", flag=7, sys_flag=1, unique_id="ID", reconsume_times=2, max_reconsume_times=5)
STORED = SendMessageResponseHeader(msg_id="7F00000100002A9F0000000000000064", queue_id=1, queue_offset=9, transaction_id="T")


def requests_to(broker: Peer) -> tuple[SendRequests, Peers]:
    peers = Peers(**{"broker-a": broker})
    return SendRequests(calls_to(peers)), peers


async def test_the_header_says_all_that_there_is_to_say_of_a_message() -> None:
    requests, peers = requests_to(lambda request: success(STORED))
    await requests.send_message("g", WIRE, QUEUE, born_ms=11, timeout_ms=1234)
    (asked,) = peers.asked
    assert asked.command.decode_header(SendMessageRequestHeaderV2) == SendMessageRequestHeaderV2(
        producer_group="g",
        topic="orders",
        default_topic="TBW102",
        default_topic_queue_nums=4,
        queue_id=3,
        sys_flag=1,
        born_timestamp=11,
        flag=7,
        properties="KEYS\x01k",
        reconsume_times=2,
        max_reconsume_times=5,
        broker_name="broker-a",
    )
    assert (asked.command.body, asked.timeout_ms, asked.is_oneway) == (b"body", 1234, False)


@pytest.mark.parametrize(("is_batch", "code"), [(False, RequestCode.SEND_MESSAGE_V2), (True, RequestCode.SEND_BATCH_MESSAGE)])
async def test_a_batch_has_a_code_of_its_own(is_batch: bool, code: RequestCode) -> None:
    requests, peers = requests_to(lambda request: success(STORED))
    wire = WireMessage("orders", b"body", "", 0, 0, "ID", is_batch=is_batch)
    await requests.send_message("g", wire, QUEUE, born_ms=1, timeout_ms=1)
    await requests.send_message_oneway("g", wire, QUEUE, born_ms=1)
    assert peers.codes == [code, code]
    assert peers.asked[0].command.decode_header(SendMessageRequestHeaderV2).batch is is_batch
    assert [asked.is_oneway for asked in peers.asked] == [False, True]


async def test_the_result_says_where_the_broker_stored_it() -> None:
    requests, _ = requests_to(lambda request: success(STORED))
    result = await requests.send_message("g", WIRE, QUEUE, born_ms=1, timeout_ms=1)
    assert (result.message_id, result.offset_message_id) == ("ID", STORED.msg_id)
    assert (result.queue, result.queue_offset) == (MessageQueue("orders", "broker-a", 1), 9), "the broker chose another queue"
    assert (result.transaction_id, result.send_status) == ("T", SendStatus.SEND_OK)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        (ResponseCode.FLUSH_DISK_TIMEOUT, SendStatus.FLUSH_DISK_TIMEOUT),
        (ResponseCode.FLUSH_SLAVE_TIMEOUT, SendStatus.FLUSH_SLAVE_TIMEOUT),
        (ResponseCode.SLAVE_NOT_AVAILABLE, SendStatus.SLAVE_NOT_AVAILABLE),
    ],
)
async def test_what_is_stored_less_safely_than_asked_for_is_stored(code: ResponseCode, status: SendStatus) -> None:
    requests, _ = requests_to(lambda request: answer(code, STORED))
    assert (await requests.send_message("g", WIRE, QUEUE, born_ms=1, timeout_ms=1)).send_status is status


@pytest.mark.parametrize("code", [ResponseCode.SYSTEM_BUSY, ResponseCode.MESSAGE_ILLEGAL, 4711])
async def test_any_other_answer_is_a_refusal(code: int) -> None:
    requests, _ = requests_to(lambda request: answer(code, remark="no"))
    with pytest.raises(BrokerError) as refused:
        await requests.send_message("g", WIRE, QUEUE, born_ms=1, timeout_ms=1)
    assert refused.value.code == code


async def test_success_without_a_place_is_no_answer_to_rely_on() -> None:
    requests, _ = requests_to(lambda request: success())
    with pytest.raises(UnreadableAnswer, match="the custom field <msgId> is null"):
        await requests.send_message("g", WIRE, QUEUE, born_ms=1, timeout_ms=1)


async def test_a_message_whose_answer_does_not_come_in_time_is_not_said_to_be_stored() -> None:
    requests, _ = requests_to(lambda request: RemotingTimeout("no answer"))
    with pytest.raises(RequestTimedOut):
        await requests.send_message("g", WIRE, QUEUE, born_ms=1, timeout_ms=1)


async def test_a_decision_leaves_one_way() -> None:
    requests, peers = requests_to(lambda request: success())
    header = EndTransactionRequestHeader(
        producer_group="g", tran_state_table_offset=1, commit_log_offset=2, commit_or_rollback=8, msg_id="ID"
    )
    await requests.end_transaction("broker-a", header)
    assert peers.asked[0].is_oneway
    assert peers.asked[0].command.decode_header(EndTransactionRequestHeader) == header


async def test_a_topic_is_created_for_reading_and_writing() -> None:
    requests, peers = requests_to(lambda request: success())
    await requests.create_topic("broker-a:1", "orders", 6)
    header = peers.asked[0].command.decode_header(CreateTopicRequestHeader)
    assert (header.topic, header.read_queue_nums, header.write_queue_nums, header.perm) == ("orders", 6, 6, 6)


async def test_a_topic_that_is_refused_says_why() -> None:
    requests, _ = requests_to(lambda request: answer(ResponseCode.SYSTEM_ERROR, remark="reserved by the system"))
    with pytest.raises(BrokerError, match="reserved by the system"):
        await requests.create_topic("broker-a:1", "TBW102", 6)
