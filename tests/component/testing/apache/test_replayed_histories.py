"""Tests that a broker stores and sends what the console's replay predicts.

Each history is run on this broker, and on this broker while it imitates Apache's.
"""

import asyncio

import pytest

from rocketmq_broker.admin.replay import HISTORIES, CheckHistory, ScriptedTransaction, SideTotals, replay
from rocketmq_broker.client import LocalTransactionState, Message, MessageExt, TransactionProducer
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.testing import RocketMQ

STATES = {
    "COMMIT": LocalTransactionState.COMMIT_MESSAGE,
    "ROLLBACK": LocalTransactionState.ROLLBACK_MESSAGE,
    "UNKNOWN": LocalTransactionState.UNKNOWN,
}


class Scripted:
    """A listener that follows the script of its transactions."""

    def __init__(self, history: CheckHistory) -> None:
        self._by_name = {transaction.name: transaction for transaction in history.transactions}
        self._asked = dict.fromkeys(self._by_name, 0)

    @property
    def check_backs(self) -> int:
        return sum(self._asked.values())

    async def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        transaction = self._by_name[message.keys[0]]
        if transaction.decision is None:
            return LocalTransactionState.UNKNOWN
        await asyncio.sleep((transaction.decided_ms - transaction.sent_ms) / 1000)
        return STATES[transaction.decision]

    async def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        name = message.keys[0]
        self._asked[name] += 1
        return STATES[self._by_name[name].answer(self._asked[name])]


async def send(producer: TransactionProducer, transaction: ScriptedTransaction) -> None:
    await asyncio.sleep(transaction.sent_ms / 1000)
    immunity = transaction.immunity_s
    properties = {} if immunity is None else {props.CHECK_IMMUNITY_TIME_IN_SECONDS: str(immunity)}
    message = Message.of("orders", "a book", keys=[transaction.name], user_properties=properties)
    await producer.send_message_in_transaction(message)


async def played(rocketmq: RocketMQ, history: CheckHistory) -> SideTotals:
    """Runs the history on the broker. Returns the numbers of messages that the broker has stored and sent."""
    listener = Scripted(history)
    producer = await rocketmq.transaction_producer("producer", listener)
    await producer.create_topic("orders")
    sending = [asyncio.create_task(send(producer, transaction)) for transaction in history.transactions]
    await rocketmq.advance(seconds=history.until_ms / 1000)
    await asyncio.gather(*sending)
    return SideTotals(
        halves=len(await rocketmq.messages(topics.HALF_TOPIC)),
        ops=len(await rocketmq.messages(topics.OP_HALF_TOPIC)),
        check_backs=listener.check_backs,
        deliveries=len(await rocketmq.messages("orders")),
        discarded=len(await rocketmq.messages(topics.CHECK_MAX_TIME_TOPIC)),
    )


@pytest.mark.parametrize("name", HISTORIES)
async def test_this_broker_stores_and_sends_what_the_replay_says(rocketmq: RocketMQ, name: str) -> None:
    assert await played(rocketmq, HISTORIES[name]) == replay(HISTORIES[name]).ours


@pytest.mark.parametrize("name", HISTORIES)
async def test_as_apache_it_asks_delivers_and_discards_as_the_replay_says(rocketmq: RocketMQ, name: str) -> None:
    rocketmq.as_apache()
    found, said = await played(rocketmq, HISTORIES[name]), replay(HISTORIES[name]).apache
    assert (found.check_backs, found.deliveries, found.discarded) == (said.check_backs, said.deliveries, said.discarded)
