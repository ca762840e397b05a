"""What half queue and op queue tell of pending transactions, where a broker has no list of them."""

from __future__ import annotations

import pytest

from broker.admin.half_queue import UndecidedHalf, undecided_halves
from broker.admin.session import Session, Target, run
from broker.client import LocalTransactionState, Message, MessageExt
from broker.testing import SyncRocketMQ


class Shop:
    def __init__(self, state: LocalTransactionState) -> None:
        self._state = state

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return self._state

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN


def undecided(rocketmq: SyncRocketMQ) -> list[UndecidedHalf]:
    found: list[UndecidedHalf] = []

    async def work(session: Session) -> None:
        found.extend(await undecided_halves(session.brokers[0]))

    run(Target(namesrv_addr=rocketmq.namesrv_addr), work)
    return found


@pytest.mark.parametrize("state", [LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE])
def test_a_half_message_with_an_op_message_is_decided(state: LocalTransactionState, rocketmq: SyncRocketMQ) -> None:
    rocketmq.transaction_producer("shops", Shop(state)).send_message_in_transaction(Message.of("orders", b"paid"))
    rocketmq.advance(seconds=1)
    assert undecided(rocketmq) == []


def test_half_messages_without_an_op_message_are_listed_newest_first(rocketmq: SyncRocketMQ) -> None:
    producer = rocketmq.transaction_producer("shops", Shop(LocalTransactionState.UNKNOWN))
    for key in ("order-1", "order-2"):
        producer.send_message_in_transaction(Message.of("orders", b"paid", keys=[key]))
    found = undecided(rocketmq)
    assert [half.keys for half in found] == [["order-2"], ["order-1"]]
    assert {(half.producer_group, half.topic) for half in found} == {("shops", "orders")}


def test_a_broker_without_half_messages_has_none(rocketmq: SyncRocketMQ) -> None:
    assert undecided(rocketmq) == []
