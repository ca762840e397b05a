"""Failpoints that are armed while the service runs: hit once, by the message that they are meant for."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.client import LocalTransactionState
from broker.message import Message, MessageExt
from order_service.service_layer.armed_failpoints import ArmedFailpoints, FailingListener

COMMIT, ROLLBACK, UNKNOWN = (
    LocalTransactionState.COMMIT_MESSAGE,
    LocalTransactionState.ROLLBACK_MESSAGE,
    LocalTransactionState.UNKNOWN,
)
ORDER = Message.of("orders", b'{"customer": "ada"}')


class Decided:
    """A listener that always decides likewise."""

    def __init__(self, decision: LocalTransactionState) -> None:
        self._decision = decision

    def execute_local_transaction(self, message: Message, arg: object) -> LocalTransactionState:
        return self._decision

    def check_local_transaction(self, message: MessageExt) -> LocalTransactionState:
        return self._decision


class Desk:
    """A failing listener, and what it did to the process."""

    def __init__(self, folder: Path, decision: LocalTransactionState) -> None:
        self.ended = 0
        self.waited_s: list[float] = []
        self._folder = folder
        self._listener = FailingListener(
            Decided(decision), ArmedFailpoints(folder), end_process=self._end, wait=self.waited_s.append
        )

    def arm(self, name: str, meant_for: str = "") -> None:
        (self._folder / name).write_text(meant_for)

    def execute(self) -> LocalTransactionState:
        return self._listener.execute_local_transaction(ORDER, None)

    def _end(self) -> None:
        self.ended += 1


@pytest.mark.parametrize("decision", [COMMIT, ROLLBACK, UNKNOWN])
def test_without_an_armed_failpoint_the_decision_passes(decision: LocalTransactionState, tmp_path: Path) -> None:
    desk = Desk(tmp_path / "missing", decision)
    assert (desk.execute(), desk.ended, desk.waited_s) == (decision, 0, [])


@pytest.mark.parametrize(("name", "decision"), [("lose-commit", COMMIT), ("lose-rollback", ROLLBACK)])
def test_a_decision_is_lost_once(name: str, decision: LocalTransactionState, tmp_path: Path) -> None:
    desk = Desk(tmp_path, decision)
    desk.arm(name)
    assert [desk.execute(), desk.execute()] == [UNKNOWN, decision]
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("name", "decision"), [("lose-commit", ROLLBACK), ("lose-rollback", COMMIT), ("lose-commit", UNKNOWN)])
def test_a_failpoint_waits_for_its_own_decision(name: str, decision: LocalTransactionState, tmp_path: Path) -> None:
    desk = Desk(tmp_path, decision)
    desk.arm(name)
    assert desk.execute() is decision
    assert (tmp_path / name).exists()


def test_the_process_ends_after_the_local_commit_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path, COMMIT)
    desk.arm("exit-after-local-commit")
    desk.execute()
    desk.execute()
    assert desk.ended == 1


def test_no_process_ends_where_nothing_was_stored(tmp_path: Path) -> None:
    desk = Desk(tmp_path, ROLLBACK)
    desk.arm("exit-after-local-commit")
    desk.execute()
    assert desk.ended == 0


def test_the_local_transaction_begins_late_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path, COMMIT)
    desk.arm("hold-local-transaction")
    desk.execute()
    desk.execute()
    assert desk.waited_s == [6.0]


def test_a_failpoint_that_is_meant_for_another_customer_stays_armed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, COMMIT)
    desk.arm("lose-commit", "grace")
    assert desk.execute() is COMMIT
    desk.arm("lose-commit", "ada\n")
    assert desk.execute() is UNKNOWN
