"""Tests that a program can end a transaction by its id, without the listener, even in another process."""

import pytest

from rocketmq_broker.client import (
    BrokerError,
    LocalTransactionState,
    Message,
    MessageExt,
    TransactionNotFound,
    TransactionProducer,
    local_transaction,
)
from rocketmq_broker.testing import RocketMQ

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState


@local_transaction
def coordinated(message: Message, arg: object) -> LocalTransactionState:
    return UNKNOWN


@coordinated.answers_check_backs
def ask_the_coordinator(message: MessageExt) -> LocalTransactionState:
    return UNKNOWN


async def begin(producer: TransactionProducer, *keys: str) -> str:
    """Sends a half message without a decision. Returns its transaction id."""
    return str((await producer.send_message_in_transaction(Message.of("paid", "is paid", keys=keys))).transaction_id)


async def test_a_coordinator_in_another_process_commits_and_rolls_back(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("orders", coordinated)
    first, second = [await begin(producer, key) for key in ("order-1", "order-2")]
    await producer.shutdown()
    await rocketmq.advance(minutes=3)
    coordinator = await rocketmq.transaction_producer("orders", coordinated)
    await coordinator.end_transaction(first, COMMIT)
    await coordinator.end_transaction(second, ROLLBACK)
    with pytest.raises(BrokerError):
        await coordinator.end_transaction(second, COMMIT)
    assert await rocketmq.committed("order-1")
    assert await rocketmq.rolled_back("order-2")


async def test_a_half_message_that_was_checked_meanwhile_is_decided_by_its_newest_copy(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("orders", coordinated)
    transaction_id = await begin(producer, "order-1")
    await rocketmq.advance(minutes=3)
    await producer.end_transaction(transaction_id, COMMIT)
    assert await rocketmq.committed("order-1")


async def test_a_transaction_that_nobody_has_is_not_found(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("orders", coordinated)
    await begin(producer, "order-1")
    with pytest.raises(TransactionNotFound, match="no half message has transaction id ABC"):
        await producer.end_transaction("ABC", COMMIT)


async def test_a_transaction_that_has_the_id_as_its_key_is_not_decided(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("orders", coordinated)
    transaction_id = await begin(producer, "order-1")
    await begin(producer, "order-2", transaction_id)
    await producer.end_transaction(transaction_id, COMMIT)
    assert await rocketmq.committed("order-1")
    assert await rocketmq.pending("order-2")


async def test_a_producer_of_another_group_decides_nothing(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("orders", coordinated)
    other = await rocketmq.transaction_producer("others", coordinated)
    transaction_id = await begin(producer, "order-1")
    with pytest.raises(BrokerError, match="group"):
        await other.end_transaction(transaction_id, COMMIT)
    assert await rocketmq.pending("order-1")


async def test_unknown_is_no_decision(rocketmq: RocketMQ) -> None:
    producer = await rocketmq.transaction_producer("orders", coordinated)
    with pytest.raises(ValueError, match="must be COMMIT_MESSAGE or ROLLBACK_MESSAGE, not UNKNOWN"):
        await producer.end_transaction("ABC", UNKNOWN)
