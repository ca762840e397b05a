"""Tests of an RPC hook in a producer or consumer, with a broker whose time the test controls."""

import pytest

from rocketmq_broker.client import (
    BrokerUnreachable,
    ConsumeContext,
    ConsumeFromWhere,
    ConsumeStatus,
    MessageExt,
    PullConsumer,
    RemotingCommand,
    RequestCode,
)
from rocketmq_broker.message import sysflag
from rocketmq_broker.testing.rocketmq import RocketMQ
from tests.unit.testing.listeners import COMMIT, UNKNOWN, Transactions, order


class Losing:
    """An RPC hook that raises an error for the first frame of a kind."""

    def __init__(self, request: RequestCode | None = None, *, answer_to: RequestCode | None = None) -> None:
        self._request = request
        self._answer_to = answer_to

    def do_before_request(self, address: str, request: RemotingCommand) -> None:
        if request.code == self._request:
            self._request = None
            raise ConnectionError("the frame is dropped")

    def do_after_response(self, address: str, request: RemotingCommand, response: RemotingCommand) -> None:
        if request.code == self._answer_to and (response.body or request.code != RequestCode.PULL_MESSAGE):
            self._answer_to = None
            raise ConnectionError("the frame is dropped")

    @property
    def has_lost(self) -> bool:
        return self._request is self._answer_to is None


async def test_a_decision_that_it_stops_never_reaches_the_broker_and_check_back_brings_it(rocketmq: RocketMQ) -> None:
    hook, listener = Losing(RequestCode.END_TRANSACTION), Transactions(checked=COMMIT)
    producer = await rocketmq.transaction_producer("p", listener, rpc_hook=hook)
    await producer.send_message_in_transaction(order())
    assert hook.has_lost
    assert len(await rocketmq.pending("order-1")) == 1
    assert await rocketmq.messages("orders") == []
    await rocketmq.advance(minutes=2)
    await rocketmq.committed("order-1")
    assert listener.checks == 1


async def test_it_sees_each_decision_with_its_transaction_and_whether_a_check_asked_for_it(rocketmq: RocketMQ) -> None:
    """An RPC hook receives the same data as RocketMQ's EndTransactionHook."""
    seen: list[tuple[str, str, str]] = []

    class Watching(Losing):
        def do_before_request(self, address: str, request: RemotingCommand) -> None:
            if request.code == RequestCode.END_TRANSACTION:
                fields = request.ext_fields()
                seen.append((fields["msgId"], fields["commitOrRollback"], fields["fromTransactionCheck"]))

    producer = await rocketmq.transaction_producer("p", Transactions(UNKNOWN, checked=COMMIT), rpc_hook=Watching())
    sent = await producer.send_message_in_transaction(order())
    await rocketmq.advance(minutes=2)
    assert sent.transaction_id is not None
    assert seen == [
        (sent.transaction_id, str(sysflag.TRANSACTION_NOT_TYPE), "false"),
        (sent.transaction_id, str(sysflag.TRANSACTION_COMMIT_TYPE), "true"),
    ]


async def test_a_check_back_that_it_stops_is_not_heard_and_comes_again(rocketmq: RocketMQ) -> None:
    hook, listener = Losing(RequestCode.CHECK_TRANSACTION_STATE), Transactions(checked=COMMIT)
    producer = await rocketmq.transaction_producer("p", listener, rpc_hook=hook)
    rocketmq.lose_next_decision()
    await producer.send_message_in_transaction(order())
    await rocketmq.advance(seconds=10)
    assert (hook.has_lost, listener.checks) == (True, 0)
    await rocketmq.advance(minutes=5)
    await rocketmq.committed("order-1")
    assert listener.checks == 1


async def test_a_half_message_whose_answer_it_stops_is_sent_again_in_a_new_transaction(rocketmq: RocketMQ) -> None:
    hook = Losing(answer_to=RequestCode.SEND_MESSAGE_V2)
    producer = await rocketmq.transaction_producer("p", Transactions(), rpc_hook=hook)
    sent = await producer.send_message_in_transaction(order())
    assert hook.has_lost
    await rocketmq.committed(str(sent.transaction_id))
    (orphan,) = await rocketmq.pending("order-1")
    assert orphan.transaction_id != sent.transaction_id


async def test_messages_whose_pull_it_stops_are_pulled_again(rocketmq: RocketMQ) -> None:
    hook, consumed = Losing(answer_to=RequestCode.PULL_MESSAGE), []

    def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        consumed.extend(message.keys for message in messages)
        return ConsumeStatus.CONSUME_SUCCESS

    producer = await rocketmq.producer("p")
    await producer.send(order())
    from_first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    await rocketmq.consumer("c", "orders", listen, rpc_hook=hook, consume_from_where=from_first)
    await rocketmq.advance(seconds=10)
    assert (hook.has_lost, consumed) == (True, [("order-1",)])


async def test_a_question_of_a_pull_consumer_can_be_stopped_too(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("p")
    await producer.send(order())
    with rocketmq.inside():
        consumer = PullConsumer("c", namesrv_addr=rocketmq.namesrv_addr, rpc_hook=Losing(RequestCode.GET_MIN_OFFSET))
        async with consumer:
            queue, *_ = await consumer.queues("orders")
            with pytest.raises(BrokerUnreachable, match="GET_MIN_OFFSET: the RPC hook stopped the request: the frame is dropped"):
                await consumer.min_offset(queue)
            assert await consumer.min_offset(queue) == 0
