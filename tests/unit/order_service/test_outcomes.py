"""One table defines the consequences of each outcome of a local transaction."""

import pytest

from order_messages.states import TransactionState
from order_service.service_layer.attempt import Outcome, TransactionFailed
from rocketmq_broker.client import LocalTransactionState

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState


def test_only_the_local_commit_of_an_order_that_is_told_is_answered_commit() -> None:
    assert [outcome for outcome in Outcome if outcome.decision is COMMIT] == [Outcome.STORED]


def test_what_may_be_stored_or_is_awaited_is_left_to_check_back() -> None:
    left = [outcome for outcome in Outcome if outcome.decision is UNKNOWN]
    assert left == [Outcome.RUNNING, Outcome.AWAITING_PAYMENT, Outcome.UNKNOWN]


def test_the_caller_is_answered_a_problem_just_where_nothing_was_done() -> None:
    failures = {outcome for outcome in Outcome if outcome.problem is not None}
    assert failures == {outcome for outcome in Outcome if outcome.state is TransactionState.ROLLED_BACK}
    assert all(outcome.decision is ROLLBACK for outcome in failures)


@pytest.mark.parametrize("outcome", [outcome for outcome in Outcome if outcome.problem is not None])
def test_a_failure_says_what_is_known_and_how_it_is_answered(outcome: Outcome) -> None:
    assert (str(TransactionFailed(outcome)), TransactionFailed(outcome).problem) == (outcome.meaning, outcome.problem)
    assert str(TransactionFailed(outcome, "the broker is away")) == "the broker is away"


def test_what_was_done_is_no_failure() -> None:
    with pytest.raises(ValueError, match="outcome STORED is not a failure"):
        TransactionFailed(Outcome.STORED)
