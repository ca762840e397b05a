"""Tests of the faults that the fixture can inject."""

import pytest

from rocketmq_broker.client import BrokerError, ClientError, LocalTransactionState, Message, SendFailed, SendStatus
from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.testing.rocketmq import RocketMQ
from tests.unit.testing.listeners import ROLLBACK, UNKNOWN, Consumption, Transactions, order, send_in_transaction

STORED_LESS_SAFELY = [ResponseCode.FLUSH_DISK_TIMEOUT, ResponseCode.FLUSH_SLAVE_TIMEOUT, ResponseCode.SLAVE_NOT_AVAILABLE]


async def test_an_answer_to_a_check_back_can_be_lost_too(rocketmq: RocketMQ) -> None:
    listener = Transactions()
    producer = await rocketmq.transaction_producer("p", listener)
    rocketmq.lose_next_decision(2)
    await producer.send_message_in_transaction(order())
    await rocketmq.advance(seconds=11)
    assert (listener.checks, len(await rocketmq.pending("order-1"))) == (1, 1)
    await rocketmq.advance(seconds=2)
    assert listener.checks == 2
    await rocketmq.committed("order-1")


async def test_an_unknown_answer_is_no_decision_that_is_lost(rocketmq: RocketMQ) -> None:
    listener = Transactions(UNKNOWN, ROLLBACK)
    producer = await rocketmq.transaction_producer("p", listener)
    rocketmq.lose_next_decision()
    await producer.send_message_in_transaction(order())
    await rocketmq.advance(seconds=11)
    assert len(await rocketmq.pending()) == 1
    await rocketmq.advance(seconds=2)
    await rocketmq.rolled_back("order-1")
    assert listener.checks == 2


async def test_a_message_whose_answer_is_lost_is_stored_and_its_producer_does_not_know(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("p")
    rocketmq.lose_next_answer()
    with pytest.raises(SendFailed):
        await producer.send(order())
    assert [message.keys for message in await rocketmq.messages("orders")] == [("order-1",)]
    assert (await producer.send(order())).send_status is SendStatus.SEND_OK


async def test_the_answer_to_a_message_with_a_certain_key_is_lost_once_whenever_it_comes(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("p")
    rocketmq.lose_next_answer(key="order-1")
    assert (await producer.send(Message.of("orders", b"another", keys=["order-2"]))).send_status is SendStatus.SEND_OK
    with pytest.raises(SendFailed):
        await producer.send(order())
    assert (await producer.send(order())).send_status is SendStatus.SEND_OK


async def test_a_half_message_whose_answer_is_lost_runs_no_local_transaction_and_is_checked(rocketmq: RocketMQ) -> None:
    listener = Transactions(checked=ROLLBACK)
    producer = await rocketmq.transaction_producer("p", listener)
    rocketmq.lose_next_answer()
    with pytest.raises(SendFailed):
        await producer.send_message_in_transaction(order())
    assert len(await rocketmq.pending("order-1")) == 1
    await rocketmq.advance(minutes=2)
    await rocketmq.rolled_back("order-1")


async def test_held_check_backs_arrive_when_they_are_released(rocketmq: RocketMQ) -> None:
    listener = Transactions(UNKNOWN)
    await send_in_transaction(rocketmq, listener)
    with rocketmq.hold_check_backs():
        await rocketmq.advance(seconds=61)
        assert listener.checks == 0
    await rocketmq.committed("order-1")
    assert listener.checks == 1


async def test_clients_connect_again_after_their_connections_were_cut(rocketmq: RocketMQ) -> None:
    listener, consumption = Transactions(UNKNOWN), Consumption()
    producer = await rocketmq.transaction_producer("p", listener)
    await producer.create_topic("orders")
    await rocketmq.consumer("c", "orders", consumption)
    await producer.send_message_in_transaction(order())
    rocketmq.cut_connections()
    await rocketmq.advance(minutes=2)
    assert listener.checks == 1
    assert consumption.bodies == [b"1"]


async def test_refused_sends_raise_in_the_producer_until_they_are_accepted(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("p", retry_times_when_send_failed=0)
    rocketmq.refuse_sends(ResponseCode.MESSAGE_ILLEGAL)
    with pytest.raises(BrokerError, match="requested by the test"):
        await producer.send(order())
    rocketmq.accept_sends()
    await producer.send(order())
    assert len(await rocketmq.messages("orders")) == 1


async def test_a_send_that_is_refused_for_a_moment_is_tried_again(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("p")
    rocketmq.refuse_sends(times=1)
    assert (await producer.send(order())).send_status is SendStatus.SEND_OK


@pytest.mark.parametrize("code", STORED_LESS_SAFELY)
async def test_a_status_of_a_stored_message_is_answered_and_the_message_is_stored(rocketmq: RocketMQ, code: ResponseCode) -> None:
    producer = await rocketmq.producer("p")
    rocketmq.refuse_sends(code, times=1)
    assert (await producer.send(order())).send_status.name == code.name
    assert (await producer.send(order())).send_status is SendStatus.SEND_OK
    assert len(await rocketmq.messages("orders")) == 2


@pytest.mark.parametrize("code", STORED_LESS_SAFELY)
async def test_a_half_message_that_is_not_stored_safely_is_rolled_back_and_its_local_transaction_does_not_run(
    rocketmq: RocketMQ, code: ResponseCode
) -> None:
    listener = Transactions()
    producer = await rocketmq.transaction_producer("p", listener)
    rocketmq.refuse_sends(code, times=1)
    sent = await producer.send_message_in_transaction(order())
    await rocketmq.settle()
    assert (sent.send_status.name, sent.local_transaction_state) == (code.name, LocalTransactionState.ROLLBACK_MESSAGE)
    assert listener.executions == 0
    await rocketmq.rolled_back(str(sent.transaction_id))


async def test_a_full_disk_refuses_messages_until_there_is_room(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("p")
    await producer.send(order())
    rocketmq.fill_disk()
    await rocketmq.advance(seconds=20)
    with pytest.raises(ClientError, match="disk"):
        await producer.send(order())
    rocketmq.free_disk()
    await rocketmq.advance(seconds=20)
    await producer.send(order())


async def test_a_pending_transaction_survives_a_crash(rocketmq: RocketMQ) -> None:
    listener = Transactions()
    producer = await rocketmq.transaction_producer("p", listener)
    rocketmq.lose_next_decision()
    await producer.send_message_in_transaction(order())
    addresses = rocketmq.namesrv_addr, rocketmq.broker_addr
    await rocketmq.crash()
    assert not rocketmq.is_running
    await rocketmq.restart()
    assert (rocketmq.namesrv_addr, rocketmq.broker_addr) == addresses
    await rocketmq.advance(minutes=3)
    assert listener.checks == 1
    await rocketmq.committed("order-1")


@pytest.mark.parametrize(
    ("flush", "power", "left"), [("SYNC_FLUSH", True, 1), ("ASYNC_FLUSH", True, 0), ("ASYNC_FLUSH", False, 1)]
)
async def test_a_power_failure_takes_what_was_not_flushed(flush: str, power: bool, left: int) -> None:
    async with RocketMQ({"flushDiskType": flush}) as rocketmq:
        producer = await rocketmq.producer("p")
        await producer.send(order("order-0"))
        await rocketmq.advance(seconds=5)
        await producer.send(order("order-1"))
        await rocketmq.crash(power=power)
        await rocketmq.restart()
        assert [one.keys for one in await rocketmq.messages("orders")] == [("order-0",), ("order-1",)][: 1 + left]


async def test_a_store_in_a_directory_survives_a_crash(tmp_path) -> None:  # type: ignore[no-untyped-def]
    async with RocketMQ(store=tmp_path / "store") as rocketmq:
        producer = await rocketmq.producer("p")
        await producer.send(order())
        with pytest.raises(ValueError, match="in memory"):
            await rocketmq.crash(power=True)
        await rocketmq.crash()
        await rocketmq.restart()
        assert len(await rocketmq.messages("orders")) == 1


async def test_a_message_that_fails_is_redelivered_by_the_delay_levels(rocketmq: RocketMQ) -> None:
    consumption = Consumption(failures=3)
    producer = await rocketmq.producer("p")
    await producer.create_topic("orders")
    await rocketmq.consumer("c", "orders", consumption)
    await producer.send(order())
    await rocketmq.settle()
    assert len(consumption.got) == 1
    for redeliveries, seconds in enumerate((10, 30, 60), start=1):
        await rocketmq.advance(seconds=seconds + 1)
        assert len(consumption.got) == 1 + redeliveries
    await rocketmq.advance(minutes=5)
    assert [message.reconsume_times for message in consumption.got] == [0, 1, 2, 3]


async def test_a_delayed_message_comes_at_its_time(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.producer("p")
    await producer.send(order(delay_time_level=16))
    await rocketmq.advance(minutes=29, seconds=59)
    assert await rocketmq.messages("orders") == []
    await rocketmq.advance(seconds=1)
    assert len(await rocketmq.messages("orders")) == 1
