"""Tests of the failpoints of the credit service and its worker. An armed failpoint is hit once, by its order."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from sqlmodel import Session

from credit_service.adapters.drain_task import TaskSender
from credit_service.adapters.failpoints import CreditFailpoints
from credit_service.adapters.ledger import Ledger, OpensSession
from credit_service.service_layer.crediting import Crediting
from credit_service.settings import WorkerSettings
from credit_service.worker.process import drain_of
from rocketmq_broker.client import ConsumeContext, ConsumeFromWhere, ConsumeStatus
from rocketmq_broker.databases.inbox import DrainResult
from rocketmq_broker.message import Message, MessageExt
from rocketmq_broker.testing import SyncRocketMQ
from service_runtime.failing.armed_failpoints import ArmedFailpoints, read_hits
from tests.component.credit_service.conftest import a_context, an_order, orders, points

HIT = "order-1"


def arm(folder: Path, name: str, *, done: list[str] | None = None) -> CreditFailpoints:
    (folder / name).write_text(HIT)
    return CreditFailpoints(ArmedFailpoints(folder, lambda: 1_000), lambda: (done or []).append("ended"))


def hits(folder: Path) -> list[tuple[str, str | None]]:
    return [(hit.failpoint, hit.transaction_id) for hit in read_hits(folder)]


@pytest.mark.parametrize(
    ("name", "done"),
    [("exit-at-delivery", ["ended", "stored"]), ("exit-before-acknowledgement", ["stored", "ended"])],
)
def test_the_service_ends_before_or_after_it_stores_a_batch(name: str, done: list[str], tmp_path: Path) -> None:
    happened = [""]

    def listen(_messages: list[MessageExt], _context: ConsumeContext) -> ConsumeStatus:
        happened.append("stored")
        return ConsumeStatus.CONSUME_SUCCESS

    listener = arm(tmp_path, name, done=happened).listener(listen)
    for batch in (orders(1, first=5), [*orders(1, first=6), *orders(1, first=1)], orders(1, first=1)):
        assert listener(batch, a_context()) is ConsumeStatus.CONSUME_SUCCESS
    assert happened[1:] == ["stored", *done, "stored"]
    assert hits(tmp_path) == [(name, "id-1")]


class Killed(BaseException):
    """Simulates kill -9, because no handler catches this exception."""


@pytest.mark.parametrize(("name", "stored"), [("exit-before-credit-commit", 0), ("exit-after-credit-commit", 3)])
def test_the_worker_ends_before_or_after_its_commit(ledger: Ledger, tmp_path: Path, name: str, stored: int) -> None:
    def kill() -> None:
        raise Killed

    (tmp_path / name).write_text(HIT)
    failpoints = CreditFailpoints(ArmedFailpoints(tmp_path, lambda: 1_000), kill)
    inbox = ledger.inbox_through(failpoints.session)
    handle = failpoints.handler(Crediting(ledger).credit)
    ledger.store(orders(1, first=7))
    assert inbox.drain(handle).handled == 1
    ledger.store(orders(3))
    with pytest.raises(Killed):
        inbox.drain(handle)
    assert (points(ledger), ledger.inbox.state().new) == (1 + stored, 3 - stored)
    assert hits(tmp_path) == [(name, "id-1")]
    assert inbox.drain(handle).handled == 3 - stored
    assert points(ledger) == 4


def test_a_worker_has_failpoints_where_the_setting_names_a_folder(
    sqlite_ledger: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[int] = []
    monkeypatch.setattr("os._exit", ended.append)
    drain = drain_of(WorkerSettings().model_copy(update={"failpoints_folder": tmp_path}), sqlite_ledger)
    for name in ("exit-before-credit-commit", "exit-after-credit-commit"):
        (tmp_path / name).write_text(HIT)
        sqlite_ledger.store(orders(2))
        assert drain(False) == DrainResult(handled=2)
    assert [name for name, _ in hits(tmp_path)] == ["exit-before-credit-commit", "exit-after-credit-commit"]


def test_the_task_of_a_message_is_lost_once(sqlite_ledger: Ledger, tmp_path: Path) -> None:
    class Tasks:
        sent, inbox = 0, sqlite_ledger.inbox

        def send_if_due(self) -> None:
            self.sent += 1

    tasks = Tasks()
    failpoints = arm(tmp_path, "lose-task")
    send_if_due = failpoints.sending(cast(TaskSender, tasks))
    send_if_due()

    def store(messages: list[MessageExt], _context: ConsumeContext) -> ConsumeStatus:
        send_if_due()
        assert tasks.sent == 2, "no task is lost before the messages are stored"
        sqlite_ledger.store(messages)
        return ConsumeStatus.CONSUME_SUCCESS

    failpoints.listener(store)(orders(2), a_context())
    send_if_due()
    assert tasks.sent == 2
    send_if_due()
    assert tasks.sent == 3
    assert hits(tmp_path) == [("lose-task", "id-1")]


def test_a_session_of_other_messages_does_not_end_the_process(sqlite_ledger: Ledger, tmp_path: Path) -> None:
    """The outcome of the previous session is ignored, because that session had other messages."""
    ended: list[str] = [""]
    failpoints = arm(tmp_path, "exit-after-credit-commit", done=ended)

    @contextmanager
    def failing(_sessions: OpensSession) -> Iterator[Session]:
        raise RuntimeError("cannot open a session")
        yield

    sqlite_ledger.store([an_order("order-1", 1)])
    inbox = sqlite_ledger.inbox_through(failpoints.session)
    handle = failpoints.handler(Crediting(sqlite_ledger).credit)
    with pytest.raises(RuntimeError), failpoints.session(lambda: failing(None)):  # type: ignore[arg-type]
        pass
    assert ended == [""]
    inbox.drain(handle)
    assert ended == ["", "ended"]


def test_a_delivery_that_is_lost_comes_again(rocketmq: SyncRocketMQ, tmp_path: Path) -> None:
    hook = arm(tmp_path, "lose-delivery")
    producer = rocketmq.producer("shop")
    producer.send(Message.of("orders", f'{{"order_id": "{HIT}"}}'))
    consumed: list[MessageExt] = []

    def listen(messages: list[MessageExt], context: ConsumeContext) -> ConsumeStatus:
        consumed.extend(messages)
        return ConsumeStatus.CONSUME_SUCCESS

    from_first = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
    rocketmq.consumer("credit_service", "orders", listen, rpc_hook=hook, consume_from_where=from_first)
    rocketmq.advance(seconds=10)
    assert [one.text for one in consumed] == [f'{{"order_id": "{HIT}"}}']
    assert hits(tmp_path) == [("lose-delivery", None)]
