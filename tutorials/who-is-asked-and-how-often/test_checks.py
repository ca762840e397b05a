"""Tests which producers receive check-backs, how many they receive, and what happens after the last one."""

from itertools import pairwise

from rocketmq_broker.client import LocalTransactionState, Message, MessageExt
from rocketmq_broker.testing import RocketMQ

COMMIT, UNKNOWN = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.UNKNOWN


class Program:
    """A program whose listener records the check-backs that it receives."""

    def __init__(self, rocketmq: RocketMQ, answer: LocalTransactionState = UNKNOWN) -> None:
        self.rocketmq = rocketmq
        self.answer = answer
        self.asked_at_s: list[int] = []

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return UNKNOWN

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.asked_at_s.append(round(self.rocketmq.time.elapsed_s))
        return self.answer


def order() -> Message:
    return Message.of("orders", "a book", keys=["order-1"])


async def test_the_broker_asks_fifteen_times_a_minute_apart_and_then_keeps_the_message(rocketmq: RocketMQ) -> None:
    program = Program(rocketmq)
    producer = await rocketmq.transaction_producer("shop", program)
    await producer.send_message_in_transaction(order())
    await rocketmq.advance(minutes=30)
    pauses = {after - before for before, after in pairwise(program.asked_at_s)}
    assert (len(program.asked_at_s), pauses) == (15, {60})
    assert [message.keys for message in await rocketmq.messages("TRANS_CHECK_MAX_TIME_TOPIC")] == [("order-1",)]


async def test_two_programs_in_one_group_answer_for_each_other(rocketmq: RocketMQ) -> None:
    first, second = Program(rocketmq), Program(rocketmq, COMMIT)
    dying = await rocketmq.transaction_producer("shop", first)
    await rocketmq.transaction_producer("shop", second)
    await dying.send_message_in_transaction(order())
    await dying.shutdown()
    await rocketmq.advance(minutes=2)
    assert (first.asked_at_s, len(second.asked_at_s)) == ([], 1)
    await rocketmq.committed("order-1")


async def test_while_nobody_of_the_group_is_there_no_check_is_used_up(rocketmq: RocketMQ) -> None:
    leaving = await rocketmq.transaction_producer("shop", Program(rocketmq))
    await leaving.send_message_in_transaction(order())
    await leaving.shutdown()
    await rocketmq.advance(hours=1)
    assert len(await rocketmq.pending("order-1")) == 1
    await rocketmq.transaction_producer("shop", Program(rocketmq, COMMIT))
    await rocketmq.advance(minutes=2)
    await rocketmq.committed("order-1")


async def test_a_payment_that_may_take_thirty_minutes_asks_for_immunity(rocketmq: RocketMQ) -> None:
    """A payment with an immunity of 30 minutes is first checked after 30 minutes (the exercise's solution)."""
    program = Program(rocketmq, COMMIT)
    producer = await rocketmq.transaction_producer("shop", program)
    await producer.send_message_in_transaction(order().with_properties({"CHECK_IMMUNITY_TIME_IN_SECONDS": "1800"}))
    await rocketmq.advance(minutes=29)
    assert program.asked_at_s == []
    await rocketmq.advance(minutes=3)
    assert len(program.asked_at_s) == 1
