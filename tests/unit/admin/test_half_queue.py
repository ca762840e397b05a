"""What half queue and op queue tell of pending transactions, where a broker has no list of them."""

from __future__ import annotations

import pytest

from broker.admin.half_queue import UndecidedHalf, UndecidedHalves, undecided_halves
from broker.admin.requests import BrokerRequests
from broker.admin.session import Session, Target, run
from broker.client import LocalTransactionState, Message, MessageExt
from broker.message import topics
from broker.message.record import Record
from broker.testing import SyncRocketMQ


class Shop:
    def __init__(self, state: LocalTransactionState) -> None:
        self._state = state

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return self._state

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return LocalTransactionState.UNKNOWN


def undecided(rocketmq: SyncRocketMQ) -> list[UndecidedHalf]:
    found = read(rocketmq)
    assert found.is_readable
    return found.halves


def read(rocketmq: SyncRocketMQ) -> UndecidedHalves:
    found: list[UndecidedHalves] = []

    async def work(session: Session) -> None:
        found.append(await undecided_halves(session.brokers[0]))

    run(Target(namesrv_addr=rocketmq.namesrv_addr), work)
    return found[0]


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


def test_where_op_messages_cannot_be_pulled_a_delivered_message_shows_the_commit(
    rocketmq: SyncRocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only(state: LocalTransactionState) -> None:
        rocketmq.transaction_producer(state.name, Shop(state)).send_message_in_transaction(Message.of("orders", b"paid"))

    for state in LocalTransactionState:
        only(state)
    rocketmq.advance(seconds=1)
    hide(monkeypatch, topics.OP_HALF_TOPIC)
    assert [half.producer_group for half in undecided(rocketmq)] == ["UNKNOWN", "ROLLBACK_MESSAGE"]


def test_half_messages_that_cannot_be_pulled_are_no_proof_that_there_are_none(
    rocketmq: SyncRocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = rocketmq.transaction_producer("shops", Shop(LocalTransactionState.UNKNOWN))
    producer.send_message_in_transaction(Message.of("orders", b"paid"))
    hide(monkeypatch, topics.HALF_TOPIC)
    assert read(rocketmq) == UndecidedHalves([], is_readable=False)


def hide(monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    """A topic cannot be pulled from: so Apache's brokers have it before they look for pending transactions."""
    pull = BrokerRequests.pull

    async def pull_others(self: BrokerRequests, topic: str, queue_id: int, offset: int, count: int) -> tuple[list[Record], int]:
        return ([], offset) if topic == hidden else await pull(self, topic, queue_id, offset, count)

    monkeypatch.setattr(BrokerRequests, "pull", pull_others)


def test_a_broker_without_half_messages_has_none(rocketmq: SyncRocketMQ) -> None:
    assert undecided(rocketmq) == []
