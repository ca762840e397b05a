"""Tests the order service's failpoints: in the local transaction and in the response to a check-back."""

from pathlib import Path
from typing import cast

import pytest

from order_service.adapters.failpoints import EXIT_AFTER_LOCAL_COMMIT, FailingTransactionListener, parse_failpoints
from rocketmq_broker.client import LocalTransactionState
from rocketmq_broker.message import Message, MessageExt, properties
from service_runtime.failing.armed_failpoints import ArmedFailpoints
from tests.unit.testing.listeners import Transactions

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState
ORDER = Message.of("orders", b'{"customer": "ada"}').with_properties({properties.UNIQUE_KEY: "T1"})


class Desk:
    """A listener with failpoints, and a record of its actions."""

    def __init__(self, folder: Path, decision: LocalTransactionState) -> None:
        self.executed_before_the_end: list[int] = []
        self.waited_s: list[float] = []
        self.lost: list[tuple[str, str]] = []
        self._folder = folder
        self._decided = Transactions(decision, decision)
        self._listener = FailingTransactionListener(
            self._decided,
            ArmedFailpoints(folder, lambda: 1_000),
            lambda transaction_id, failpoint: self.lost.append((transaction_id, failpoint)),
            end_process=lambda: self.executed_before_the_end.append(self._decided.executions),
            wait=self.waited_s.append,
        )

    def arm(self, name: str, meant_for: str = "") -> None:
        (self._folder / name).write_text(meant_for)

    def execute(self) -> LocalTransactionState:
        return self._listener.execute_local_transaction(ORDER, None)

    def check(self) -> LocalTransactionState:
        return self._listener.check_local_transaction(cast(MessageExt, ORDER))


@pytest.mark.parametrize("decision", [COMMIT, ROLLBACK, UNKNOWN])
def test_without_an_armed_failpoint_the_decision_passes(decision: LocalTransactionState, tmp_path: Path) -> None:
    desk = Desk(tmp_path / "missing", decision)
    assert (desk.execute(), desk.check()) == (decision, decision)
    assert (desk.executed_before_the_end, desk.waited_s, desk.lost) == ([], [], [])


@pytest.mark.parametrize(("name", "decision"), [("lose-commit", COMMIT), ("lose-rollback", ROLLBACK)])
def test_a_decision_is_taken_and_its_request_is_lost_once(name: str, decision: LocalTransactionState, tmp_path: Path) -> None:
    desk = Desk(tmp_path, decision)
    desk.arm(name)
    assert [desk.execute(), desk.execute()] == [decision, decision]
    assert desk.lost == [("T1", name)]


@pytest.mark.parametrize(("name", "decision"), [("lose-commit", ROLLBACK), ("lose-rollback", COMMIT), ("lose-commit", UNKNOWN)])
def test_a_failpoint_waits_for_its_own_decision(name: str, decision: LocalTransactionState, tmp_path: Path) -> None:
    desk = Desk(tmp_path, decision)
    desk.arm(name)
    desk.execute()
    assert desk.lost == []
    assert (tmp_path / name).exists()


@pytest.mark.parametrize("answer", [COMMIT, ROLLBACK, UNKNOWN])
def test_the_answer_to_a_check_back_is_lost_once(answer: LocalTransactionState, tmp_path: Path) -> None:
    desk = Desk(tmp_path, answer)
    desk.arm("lose-check-back-answer")
    desk.execute()
    assert [desk.check(), desk.check()] == [answer, answer]
    assert desk.lost == [("T1", "lose-check-back-answer")]


@pytest.mark.parametrize(
    ("name", "decision", "executed"),
    [
        ("exit-before-local-commit", COMMIT, [0]),
        ("exit-after-local-commit", COMMIT, [1]),
        ("exit-after-local-commit", ROLLBACK, []),
    ],
)
def test_the_process_ends_before_the_local_transaction_or_after_its_commit_once(
    name: str, decision: LocalTransactionState, executed: list[int], tmp_path: Path
) -> None:
    desk = Desk(tmp_path, decision)
    desk.arm(name)
    desk.execute()
    desk.execute()
    assert desk.executed_before_the_end == executed


def test_the_local_transaction_begins_late_once(tmp_path: Path) -> None:
    desk = Desk(tmp_path, COMMIT)
    desk.arm("hold-local-transaction")
    desk.execute()
    desk.execute()
    assert desk.waited_s == [6.0]


@pytest.mark.parametrize("text", ["", "  "])
def test_no_failpoint_is_on_by_default(text: str) -> None:
    assert parse_failpoints(text) == ()


def test_a_failpoint_says_how_often() -> None:
    (every_third,) = parse_failpoints("exit-after-local-commit:every=3")
    hits = [every_third.is_hit(EXIT_AFTER_LOCAL_COMMIT, b"") for _ in range(6)]
    assert hits == [False, False, True, False, False, True]


def test_what_passes_another_failpoint_is_not_counted() -> None:
    (every,) = parse_failpoints("exit-after-local-commit:every=1")
    assert not every.is_hit("lose-commit", b"")
    assert every.is_hit(EXIT_AFTER_LOCAL_COMMIT, b"")


@pytest.mark.parametrize(
    "text",
    ["exit", "exit-after-local-commit", "exit-after-local-commit:every=0", "exit-after-local-commit:every=x", "other:every=1"],
)
def test_a_failpoint_that_does_not_exist_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="exit-after-local-commit:every=N"):
        parse_failpoints(text)
