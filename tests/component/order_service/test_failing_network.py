"""Tests of frames that failpoints drop through the client's RPC hook. The test controls the broker's time."""

import time
from pathlib import Path

import pytest

from order_service.adapters.failpoints import FailingNetwork, FailingTransactionListener
from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.testing import SyncRocketMQ
from service_runtime.failing.armed_failpoints import ArmedFailpoints, read_hits

COMMIT, ROLLBACK = LocalTransactionState.COMMIT_MESSAGE, LocalTransactionState.ROLLBACK_MESSAGE


class Ledger:
    """A transaction listener that records the transactions that it executed."""

    def __init__(self, decision: LocalTransactionState) -> None:
        self.decision = decision
        self.executed: list[str | None] = []
        self.checked: list[str | None] = []

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        self.executed.append(message.transaction_id)
        return self.decision

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        self.checked.append(message.transaction_id)
        return self.decision if message.transaction_id in self.executed else ROLLBACK


class Shop:
    """A producer with failpoints."""

    def __init__(self, rocketmq: SyncRocketMQ, folder: Path, decision: LocalTransactionState = COMMIT) -> None:
        failpoints = ArmedFailpoints(folder, lambda: 1_000)
        network = FailingNetwork(failpoints)
        self.rocketmq = rocketmq
        self.folder = folder
        self.ledger = Ledger(decision)
        listener = FailingTransactionListener(self.ledger, failpoints, network.lose_decision, time.sleep)
        self.producer = rocketmq.transaction_producer("shop", listener, rpc_hook=network)

    def arm(self, *names: str) -> None:
        for name in names:
            (self.folder / name).write_text("ada")

    def order(self, customer: str = "ada") -> None:
        body = f'{{"customer": "{customer}"}}'
        self.producer.send_message_in_transaction(Message.of("orders", body, keys=[f"order-of-{customer}"]))

    @property
    def hits(self) -> list[tuple[str, str | None]]:
        return [(hit.failpoint, hit.transaction_id) for hit in read_hits(self.folder)]


def test_a_lost_commit_never_reaches_the_broker_and_a_check_back_brings_it(rocketmq: SyncRocketMQ, tmp_path: Path) -> None:
    shop = Shop(rocketmq, tmp_path)
    shop.arm("lose-commit")
    shop.order("grace")
    shop.order("ada")
    assert [one.keys for one in rocketmq.pending()] == [("order-of-ada",)]
    assert "COMMIT" not in rocketmq.timeline("order-of-ada")
    assert "UNKNOWN" not in rocketmq.timeline("order-of-ada")
    rocketmq.advance(minutes=1)
    rocketmq.committed("order-of-ada")
    assert shop.ledger.checked == [shop.ledger.executed[1]]
    assert shop.hits == [("lose-commit", shop.ledger.executed[1])]


def test_a_lost_rollback_never_reaches_the_broker_and_a_check_back_brings_it(rocketmq: SyncRocketMQ, tmp_path: Path) -> None:
    shop = Shop(rocketmq, tmp_path, ROLLBACK)
    shop.arm("lose-rollback")
    shop.order()
    assert len(rocketmq.pending("order-of-ada")) == 1
    rocketmq.advance(minutes=1)
    rocketmq.rolled_back("order-of-ada")
    assert len(shop.ledger.checked) == 1


@pytest.mark.parametrize("failpoint", ["lose-check-back", "lose-check-back-answer"])
def test_after_a_check_back_or_its_answer_is_lost_the_broker_asks_again(
    failpoint: str, rocketmq: SyncRocketMQ, tmp_path: Path
) -> None:
    shop = Shop(rocketmq, tmp_path)
    shop.arm("lose-commit", failpoint)
    shop.order()
    rocketmq.advance(seconds=10)
    assert [name for name, _ in shop.hits] == ["lose-commit", failpoint]
    assert shop.hits[0][1] == shop.hits[1][1]
    assert len(rocketmq.pending("order-of-ada")) == 1
    rocketmq.advance(seconds=10)
    rocketmq.committed("order-of-ada")
    assert len(shop.ledger.checked) == (1 if failpoint == "lose-check-back" else 2)


def test_a_half_message_that_is_lost_is_sent_again(rocketmq: SyncRocketMQ, tmp_path: Path) -> None:
    shop = Shop(rocketmq, tmp_path)
    shop.arm("lose-half-message")
    shop.order()
    rocketmq.committed("order-of-ada")
    assert rocketmq.pending() == []
    assert shop.hits == [("lose-half-message", None)]


def test_a_half_message_whose_answer_is_lost_is_sent_again_and_its_orphan_is_rolled_back(
    rocketmq: SyncRocketMQ, tmp_path: Path
) -> None:
    shop = Shop(rocketmq, tmp_path)
    shop.arm("lose-half-message-answer")
    shop.order()
    rocketmq.committed(str(shop.ledger.executed[0]))
    (orphan,) = rocketmq.pending()
    assert shop.hits == [("lose-half-message-answer", orphan.transaction_id)]
    rocketmq.advance(minutes=1)
    assert rocketmq.pending() == []
    assert shop.ledger.checked == [orphan.transaction_id]
    assert len(rocketmq.messages("orders")) == 1
