"""Tests differences between Apache's broker and this project's broker that a program has to handle."""

import asyncio

from rocketmq_broker.client import ConsumeContext, ConsumeStatus, LocalTransactionState, Message, MessageExt
from rocketmq_broker.testing import RocketMQ

COMMIT, UNKNOWN = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.UNKNOWN


class Shop:
    """A listener whose local transaction takes some time."""

    def __init__(self, seconds: float = 0, executed: LocalTransactionState = COMMIT) -> None:
        self.seconds, self.executed = seconds, executed
        self.checks = 0

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        await asyncio.sleep(self.seconds)
        return self.executed

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checks += 1
        is_ready = self.checks > 1 or self.seconds == 0
        return COMMIT if is_ready else UNKNOWN


def order() -> Message:
    return Message.of("orders", "a book", keys=["order-1"])


async def delivered_after_a_late_commit(rocketmq: RocketMQ) -> int:
    """Sends a COMMIT after a check-back during the local transaction. Returns how many messages consumers receive."""
    producer = await rocketmq.transaction_producer("shop", Shop(seconds=10))
    await producer.send_message_in_transaction(order())
    await rocketmq.advance(minutes=5)
    return len(await rocketmq.messages("orders"))


async def test_here_a_commit_after_a_check_back_delivers_once(rocketmq: RocketMQ) -> None:
    assert await delivered_after_a_late_commit(rocketmq) == 1


async def test_on_apaches_broker_it_delivers_twice(rocketmq: RocketMQ) -> None:
    rocketmq.as_apache()
    assert await delivered_after_a_late_commit(rocketmq) == 2


async def state_after_an_hour_without_producers(rocketmq: RocketMQ) -> list[str]:
    """Stops the only producer while its transaction is undecided. Returns the states of the transaction after an hour."""
    producer = await rocketmq.transaction_producer("shop", Shop(executed=UNKNOWN))
    await producer.send_message_in_transaction(order())
    await producer.shutdown()
    await rocketmq.advance(hours=1)
    return [one.state for one in [*await rocketmq.pending("order-1"), *await rocketmq.decided("order-1")]]


async def test_here_a_transaction_waits_for_its_producers(rocketmq: RocketMQ) -> None:
    assert await state_after_an_hour_without_producers(rocketmq) == ["pending"]


async def test_on_apaches_broker_it_is_discarded_and_nobody_was_asked(rocketmq: RocketMQ) -> None:
    rocketmq.as_apache()
    assert await state_after_an_hour_without_producers(rocketmq) == ["discarded"]


async def test_a_consumer_with_a_unique_key_is_right_on_both_brokers(rocketmq: RocketMQ) -> None:
    """Tests the exercise's solution, whose key is the order's id. The message id, which does not change, would also work here."""
    credits: dict[str, str] = {}

    async def credit(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        for message in messages:
            credits.setdefault(message.keys[0], message.text)
        return ConsumeStatus.CONSUME_SUCCESS

    rocketmq.as_apache()
    topics = await rocketmq.producer("topics")
    await topics.create_topic("orders")
    await rocketmq.consumer("credits", "orders", credit)
    assert await delivered_after_a_late_commit(rocketmq) == 2
    assert credits == {"order-1": "a book"}
