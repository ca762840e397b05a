"""Tests the requests of group members to brokers: fields, timeouts, and invalid responses."""

import pytest

from rocketmq_broker.client import BrokerError, MessageQueue, UnreadableAnswer
from rocketmq_broker.client.pull.group_requests import GroupRequests
from rocketmq_broker.client.pull.subscription import Subscription
from rocketmq_broker.protocol.bodies.group import (
    CheckClientRequestBody,
    GetConsumerListByGroupResponseBody,
    LockBatchRequestBody,
    LockBatchResponseBody,
    UnlockBatchRequestBody,
)
from rocketmq_broker.protocol.codes import RequestCode, ResponseCode
from rocketmq_broker.protocol.command import RemotingCommand
from rocketmq_broker.protocol.headers.group import GetConsumerListByGroupRequestHeader
from rocketmq_broker.protocol.headers.send import ConsumerSendMsgBackRequestHeader
from rocketmq_broker.protocol.queue_table import MessageQueueData
from tests.unit.client.messages import QUEUE, message
from tests.unit.client.peers import Peer, Peers, answer, calls_to, success

OTHER = MessageQueue("orders", "broker-a", 1)


def requests_to(broker: Peer) -> tuple[GroupRequests, Peers]:
    peers = Peers(**{"broker-a": broker})
    return GroupRequests(calls_to(peers)), peers


def yes(request: RemotingCommand) -> bytes:
    return success()


async def test_a_message_is_given_back_by_where_it_lies() -> None:
    requests, peers = requests_to(yes)
    await requests.consumer_send_message_back("g", message(3), 5, 16)
    header = peers.asked[0].command.decode_header(ConsumerSendMsgBackRequestHeader)
    assert (header.offset, header.group, header.delay_level, header.max_reconsume_times) == (300, "g", 5, 16)
    assert (header.origin_msg_id, header.origin_topic, header.broker_name) == ("ID3", "orders", "broker-a")


async def test_a_message_that_is_not_taken_back_is_an_error() -> None:
    requests, _ = requests_to(lambda request: answer(ResponseCode.SYSTEM_ERROR, remark="look message by offset failed"))
    with pytest.raises(BrokerError, match="look message by offset failed"):
        await requests.consumer_send_message_back("g", message(3), 0, 16)


async def test_the_members_are_those_that_the_broker_lists() -> None:
    body = GetConsumerListByGroupResponseBody(consumer_id_list=["a@1", "b@2"])
    requests, peers = requests_to(lambda request: success(body=body.encode()))
    assert await requests.consumer_ids("g", "broker-a") == ["a@1", "b@2"]
    assert peers.asked[0].command.decode_header(GetConsumerListByGroupRequestHeader).consumer_group == "g"


@pytest.mark.parametrize("body", [b"", b"[]", b'{"consumerIdList":7}'])
async def test_a_list_that_makes_no_sense_is_an_unreadable_answer(body: bytes) -> None:
    requests, _ = requests_to(lambda request: success(body=body))
    with pytest.raises(UnreadableAnswer):
        await requests.consumer_ids("g", "broker-a")


async def test_only_the_queues_that_the_broker_names_are_locked() -> None:
    granted = LockBatchResponseBody(lock_ok_mq_set=[MessageQueueData.of(OTHER)])
    requests, peers = requests_to(lambda request: success(body=granted.encode()))
    assert await requests.lock_queues("g", "c@1", "broker-a", [QUEUE, OTHER]) == {OTHER}
    body = LockBatchRequestBody.decode(peers.asked[0].command.body)
    assert (body.consumer_group, body.client_id) == ("g", "c@1")
    assert [data.to_queue() for data in body.mq_set] == [QUEUE, OTHER]


async def test_locks_are_given_back_by_name() -> None:
    requests, peers = requests_to(yes)
    await requests.unlock_queues("g", "c@1", "broker-a", [QUEUE])
    assert peers.codes == [RequestCode.UNLOCK_BATCH_MQ]
    assert [data.to_queue() for data in UnlockBatchRequestBody.decode(peers.asked[0].command.body).mq_set] == [QUEUE]


async def test_a_subscription_is_shown_to_the_broker_whole() -> None:
    requests, peers = requests_to(yes)
    subscription = Subscription.parse("orders", "paid || created", 9)
    await requests.check_client_config("g", "c@1", "broker-a", subscription)
    body = CheckClientRequestBody.decode(peers.asked[0].command.body)
    assert (body.group, body.client_id) == ("g", "c@1")
    assert body.subscription_data == subscription.to_wire()
