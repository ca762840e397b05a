"""Conversations may arrive in any order, and are judged in time order."""

import pytest

from lab.simulation.judges.conversations import Conversation, judge_conversations, kind_of
from lab.simulation.judges.order_shadow import ShadowState
from lab.simulation.judges.shadow import AnswerKind, CustomerAnswer, CustomerRequest, RequestKind

PLACE = CustomerRequest("ada", RequestKind.PLACE, None, "k", 500)
PLACED = CustomerAnswer(AnswerKind.DONE, "o", ShadowState.PLACED)
CANCEL = CustomerRequest("ada", RequestKind.CANCEL, "o")
CANCELLED = CustomerAnswer(AnswerKind.DONE, "o", ShadowState.CANCELLED)
READ = CustomerRequest("ada", RequestKind.READ, "o")


def row(state: str) -> dict[str, str]:
    return {"order_id": "o", "customer": "ada", "idempotency_key": "k", "state": state}


def test_conversations_are_judged_in_the_order_of_time() -> None:
    told = [Conversation(5, 9, CANCEL, CANCELLED), Conversation(6, 12, READ, PLACED), Conversation(1, 2, PLACE, PLACED)]
    report = judge_conversations(told, [row("CANCELLED")], 1_000)
    assert (report.violations, report.told) == ((), {"o": "ada"})
    late = [*told, Conversation(13, 14, READ, PLACED)]
    (violation,) = judge_conversations(late, [row("CANCELLED")], 1_000).violations
    assert violation.text == ("ada asks to read and is told done, PLACED: it cannot be in this state; the order may be CANCELLED")


def test_a_request_that_no_process_heard_does_nothing() -> None:
    unheard = Conversation(1, 2, PLACE, CustomerAnswer(AnswerKind.UNREACHED))
    assert judge_conversations([unheard], [], 1_000).violations == ()
    assert len(judge_conversations([unheard], [row("PLACED")], 1_000).violations) == 1
    placed = Conversation(3, 4, PLACE, PLACED)
    unpaid = Conversation(5, 6, CANCEL, CustomerAnswer(AnswerKind.UNREACHED))
    assert judge_conversations([placed, unpaid], [row("PLACED")], 1_000).violations == ()


@pytest.mark.parametrize(
    ("status", "kind"), [(201, AnswerKind.DONE), (202, AnswerKind.UNKNOWN), (500, AnswerKind.LOST), (None, AnswerKind.LOST)]
)
def test_a_status_says_what_a_customer_knows(status: int | None, kind: AnswerKind) -> None:
    assert kind_of(status) is kind
    assert kind_of(None, is_refused_connection=True) is AnswerKind.UNREACHED
