"""Tests that pending transactions are determined from the half and op queues of brokers that cannot list them."""

from typing import cast

import pytest

from rocketmq_broker.admin.broker_requests.requests import BrokerRequests
from rocketmq_broker.admin.running import run
from rocketmq_broker.admin.session import Session, Target
from rocketmq_broker.admin.timeline.half_queue import UndecidedHalf, UndecidedHalves, undecided_halves
from rocketmq_broker.client import LocalTransactionState, Message
from rocketmq_broker.message import properties as props
from rocketmq_broker.message import topics
from rocketmq_broker.message.record import Record
from rocketmq_broker.testing import SyncRocketMQ
from tests.stored_records import stored
from tests.unit.admin.stored_broker import StoredBroker
from tests.unit.testing.listeners import UNKNOWN, Transactions


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
    rocketmq.transaction_producer("shops", Transactions(state, UNKNOWN)).send_message_in_transaction(
        Message.of("orders", b"paid")
    )
    rocketmq.advance(seconds=1)
    assert undecided(rocketmq) == []


def test_half_messages_without_an_op_message_are_listed_newest_first(rocketmq: SyncRocketMQ) -> None:
    producer = rocketmq.transaction_producer("shops", Transactions(UNKNOWN, UNKNOWN))
    for key in ("order-1", "order-2"):
        producer.send_message_in_transaction(Message.of("orders", b"paid", keys=[key]))
    found = undecided(rocketmq)
    assert [half.keys for half in found] == [["order-2"], ["order-1"]]
    assert {(half.producer_group, half.topic) for half in found} == {("shops", "orders")}


def test_where_op_messages_cannot_be_pulled_a_delivered_message_shows_the_commit(
    rocketmq: SyncRocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only(state: LocalTransactionState) -> None:
        rocketmq.transaction_producer(state.name, Transactions(state, UNKNOWN)).send_message_in_transaction(
            Message.of("orders", b"paid")
        )

    for state in LocalTransactionState:
        only(state)
    rocketmq.advance(seconds=1)
    hide(monkeypatch, topics.OP_HALF_TOPIC)
    assert [half.producer_group for half in undecided(rocketmq)] == ["UNKNOWN", "ROLLBACK_MESSAGE"]


def test_half_messages_that_cannot_be_pulled_are_no_proof_that_there_are_none(
    rocketmq: SyncRocketMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = rocketmq.transaction_producer("shops", Transactions(UNKNOWN, UNKNOWN))
    producer.send_message_in_transaction(Message.of("orders", b"paid"))
    hide(monkeypatch, topics.HALF_TOPIC)
    assert read(rocketmq) == UndecidedHalves([], is_readable=False)


async def found_in(*records: Record) -> list[UndecidedHalf]:
    """Returns the undecided half messages of a broker with these records, newest first."""
    return (await undecided_halves(cast(BrokerRequests, StoredBroker(*records)))).halves


def half(queue_offset: int, *, checks: int | None = None, transaction_id: str = "id-1") -> Record:
    named = {props.UNIQUE_KEY: transaction_id, props.PRODUCER_GROUP: "shops", props.REAL_TOPIC: "orders"}
    if checks is not None:
        named[props.TRANSACTION_CHECK_TIMES] = str(checks)
    return stored(topics.HALF_TOPIC, properties=named, queue_offset=queue_offset, commit_log_offset=1000 * queue_offset)


def op(queue_offset: int, *decided: int) -> Record:
    return stored(topics.OP_HALF_TOPIC, ",".join(map(str, decided)).encode(), queue_offset=queue_offset, commit_log_offset=1)


async def test_a_decided_copy_decides_what_it_was_made_from() -> None:
    assert await found_in(half(0), half(1, checks=1), op(0, 1)) == []


async def test_a_copy_counts_although_its_first_half_message_is_decided() -> None:
    found = await found_in(half(0), half(1, checks=1), op(0, 0))
    assert [(one.commit_log_offset, one.checks) for one in found] == [(1000, "1")]


async def test_another_half_message_of_the_same_id_is_no_copy() -> None:
    found = await found_in(half(0), half(1), op(0, 1))
    assert [one.commit_log_offset for one in found] == [0]


async def test_one_op_message_decides_many_half_messages_as_in_release_5() -> None:
    halves = [half(number, transaction_id=f"id-{number}") for number in range(4)]
    found = await found_in(*halves, op(0, 0, 2, 3))
    assert [one.transaction_id for one in found] == ["id-1"]


def hide(monkeypatch: pytest.MonkeyPatch, hidden: str) -> None:
    """Makes pulls from the topic `hidden` return no messages, as Apache's brokers do."""
    pull = BrokerRequests.pull

    async def pull_others(self: BrokerRequests, topic: str, queue_id: int, offset: int, count: int) -> tuple[list[Record], int]:
        return ([], offset) if topic == hidden else await pull(self, topic, queue_id, offset, count)

    monkeypatch.setattr(BrokerRequests, "pull", pull_others)


def test_a_broker_without_half_messages_has_none(rocketmq: SyncRocketMQ) -> None:
    assert undecided(rocketmq) == []
