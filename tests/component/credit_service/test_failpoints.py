"""Failpoints of the credit service and its worker, each hit once, by the order that it is meant for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from credit_service.adapters.celery_tasks import Task
from credit_service.adapters.credit_wire import WireCredit
from credit_service.adapters.failpoints import FailingDelivery, FailingOrderListener, FailingTasks, failing
from credit_service.service_layer.order_listener import CreditingListener
from rocketmq_broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus
from rocketmq_broker.message import Message, MessageExt, properties
from rocketmq_broker.testing import SyncRocketMQ
from service_runtime.failing.armed_failpoints import ArmedFailpoints, read_hits

ADA: WireCredit = {"customer": "ada", "transaction_id": "T1"}
GRACE: WireCredit = {"customer": "grace", "transaction_id": "T2"}
CONTEXT = cast(ConsumeContext, None)


def message(customer: str, transaction_id: str) -> MessageExt:
    made = Message.of("orders", f'{{"customer": "{customer}"}}').with_properties({properties.UNIQUE_KEY: transaction_id})
    return cast(MessageExt, made)


def arm(folder: Path, name: str) -> ArmedFailpoints:
    (folder / name).write_text("ada")
    return ArmedFailpoints(folder, lambda: 1_000)


def hits(folder: Path) -> list[tuple[str, str | None]]:
    return [(hit.failpoint, hit.transaction_id) for hit in read_hits(folder)]


class Crediting:
    """Listener, tasks and ledger in one."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def __call__(self, messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        self.done.append("credited")
        return ConsumeStatus.CONSUME_SUCCESS

    def end(self) -> None:
        self.done.append("ended")

    def send(self, task_id: str, credits: Sequence[WireCredit]) -> Task:
        self.done.append(f"{task_id} sent")
        return cast(Task, None)

    def expect(self, task_id: str) -> Task:
        self.done.append(f"{task_id} expected")
        return cast(Task, None)

    def waiting(self) -> int:
        return 7

    def is_waiting(self, task_id: str) -> bool:
        return task_id == "task-1"

    def write(self, credits: list[WireCredit]) -> list[str]:
        self.done.append("stored")
        return ["credited"]


@pytest.mark.parametrize(
    ("name", "done"),
    [("exit-at-delivery", ["ended", "credited"]), ("exit-before-acknowledgement", ["credited", "ended"])],
)
def test_the_consumer_ends_before_or_after_its_batch(name: str, done: list[str], tmp_path: Path) -> None:
    crediting, failpoints = Crediting(), arm(tmp_path, name)
    listener = FailingOrderListener(cast(CreditingListener, crediting), failpoints, crediting.end)
    for batch in ([message("grace", "T2")], [message("grace", "T2"), message("ada", "T1")], [message("ada", "T1")]):
        assert listener(batch, CONTEXT) is ConsumeStatus.CONSUME_SUCCESS
    assert crediting.done == ["credited", *done, "credited"]
    assert hits(tmp_path) == [(name, "T1")]


@pytest.mark.parametrize(
    ("name", "done"),
    [("exit-before-credit-commit", ["ended", "stored"]), ("exit-after-credit-commit", ["stored", "ended"])],
)
def test_the_worker_ends_before_or_after_it_stores(name: str, done: list[str], tmp_path: Path) -> None:
    crediting, failpoints = Crediting(), arm(tmp_path, name)
    write = failing(crediting.write, failpoints, crediting.end)
    for batch in ([GRACE], [GRACE, ADA], [ADA]):
        assert write(batch) == ["credited"]
    assert crediting.done == ["stored", *done, "stored"]
    assert hits(tmp_path) == [(name, "T1")]


def test_a_lost_task_is_waited_for_and_not_sent(tmp_path: Path) -> None:
    crediting = Crediting()
    tasks = FailingTasks(crediting, arm(tmp_path, "lose-task"))
    tasks.send("task-1", [GRACE])
    tasks.send("task-2", [GRACE, ADA])
    tasks.send("task-2", [GRACE, ADA])
    tasks.expect("task-3")
    assert crediting.done == ["task-1 sent", "task-2 expected", "task-2 sent", "task-3 expected"]
    assert (tasks.waiting(), tasks.is_waiting("task-1"), tasks.is_waiting("task-2")) == (7, True, False)
    assert hits(tmp_path) == [("lose-task", "T1")]


def test_a_delivery_that_is_lost_comes_again(rocketmq: SyncRocketMQ, tmp_path: Path) -> None:
    hook = FailingDelivery(arm(tmp_path, "lose-delivery"))
    producer = rocketmq.producer("shop")
    producer.send(Message.of("orders", '{"customer": "ada"}'))
    consumed: list[MessageExt] = []

    def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        consumed.extend(messages)
        return ConsumeStatus.CONSUME_SUCCESS

    from_first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    rocketmq.consumer("credit_service", "orders", listen, rpc_hook=hook, consume_from_where=from_first)
    rocketmq.advance(seconds=10)
    assert [one.text for one in consumed] == ['{"customer": "ada"}']
    assert hits(tmp_path) == [("lose-delivery", None)]
