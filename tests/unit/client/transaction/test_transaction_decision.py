"""Tests how a listener's result becomes an END_TRANSACTION request, with its offsets and flags."""

import pytest

from rocketmq_broker.client import LocalTransactionState, SendResult, SendStatus
from rocketmq_broker.client.transaction.transaction_decision import (
    MAX_FAILURE_LENGTH,
    commit_log_offset_of,
    decision_and_failure,
    end_after_check,
    end_after_local_transaction,
    state_without_listener,
)
from rocketmq_broker.message import MessageQueue
from rocketmq_broker.protocol.headers.transaction import CheckTransactionStateRequestHeader
from tests.unit.client.messages import message

COMMIT, ROLLBACK, UNKNOWN = LocalTransactionState
SENT = SendResult(
    send_status=SendStatus.SEND_OK,
    message_id="UNIQUE",
    offset_message_id="7F00000100002A9F00000000000002A5",
    queue=MessageQueue("orders", "broker-a", 3),
    queue_offset=17,
    transaction_id="UNIQUE",
)


@pytest.mark.parametrize(("state", "bits"), [(COMMIT, 8), (ROLLBACK, 12), (UNKNOWN, 0)])
def test_the_decision_refers_to_the_half_message_where_the_response_says_it_is(state: LocalTransactionState, bits: int) -> None:
    header = end_after_local_transaction("group", SENT, state)
    assert (header.commit_or_rollback, header.from_transaction_check) == (bits, False)
    assert (header.tran_state_table_offset, header.commit_log_offset) == (17, 0x2A5)
    assert (header.producer_group, header.msg_id, header.broker_name) == ("group", "UNIQUE", "broker-a")


@pytest.mark.parametrize(("state", "bits"), [(COMMIT, 8), (ROLLBACK, 12), (UNKNOWN, 0)])
def test_the_answer_to_a_check_refers_to_the_offsets_of_the_check(state: LocalTransactionState, bits: int) -> None:
    check = CheckTransactionStateRequestHeader(
        tran_state_table_offset=90, commit_log_offset=9000, transaction_id="T", broker_name="broker-b"
    )
    header = end_after_check("group", check, message(5), state)
    assert (header.commit_or_rollback, header.from_transaction_check) == (bits, True)
    assert (header.tran_state_table_offset, header.commit_log_offset) == (90, 9000)
    assert (header.msg_id, header.transaction_id, header.broker_name) == ("ID5", "T", "broker-b")


def test_a_half_message_without_an_id_of_its_producer_is_named_by_where_it_is() -> None:
    check = CheckTransactionStateRequestHeader(tran_state_table_offset=1, commit_log_offset=2)
    half = message(5, properties={})
    assert end_after_check("group", check, half, COMMIT).msg_id == half.offset_message_id


@pytest.mark.parametrize(
    "status", [SendStatus.FLUSH_DISK_TIMEOUT, SendStatus.FLUSH_SLAVE_TIMEOUT, SendStatus.SLAVE_NOT_AVAILABLE]
)
def test_a_half_message_that_is_not_safe_is_rolled_back_without_running_the_local_transaction(status: SendStatus) -> None:
    assert state_without_listener(status) is ROLLBACK


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise TypeError("no text")

    __repr__ = __str__


@pytest.mark.parametrize(
    ("answer", "error", "failure"),
    [
        (None, ValueError("no total\nin order 1"), "the listener raised ValueError: no total"),
        (None, KeyError(), "the listener raised KeyError: "),
        (None, Unspeakable(), "the listener raised Unspeakable: (its text cannot be read: TypeError)"),
        (None, None, "the listener returned None"),
        (True, None, "the listener returned True"),
        ("COMMIT_MESSAGE", None, "the listener returned 'COMMIT_MESSAGE'"),
    ],
)
def test_what_is_no_answer_means_unknown_and_is_said_in_one_line(
    answer: object, error: BaseException | None, failure: str
) -> None:
    assert decision_and_failure(answer, error, "T") == (UNKNOWN, failure)


def test_an_answer_that_cannot_be_shown_means_unknown_too() -> None:
    state, failure = decision_and_failure(Unspeakable(), None, "T")
    assert (state, (failure or "").startswith("the listener returned <Unspeakable instance")) == (UNKNOWN, True)


@pytest.mark.parametrize(("answer", "error"), [(None, ValueError("x" * 10_000)), ("x" * 10_000, None)])
def test_a_failure_is_bounded(answer: object, error: BaseException | None) -> None:
    assert len(decision_and_failure(answer, error, "T")[1] or "") <= MAX_FAILURE_LENGTH


@pytest.mark.parametrize("state", list(LocalTransactionState))
def test_a_state_means_itself_and_is_no_failure(state: LocalTransactionState) -> None:
    assert decision_and_failure(state, None, "T") == (state, None)


def test_the_commit_log_offset_is_read_from_ids_with_ipv4_and_ipv6_hosts() -> None:
    assert commit_log_offset_of("7F00000100002A9F00000000000002A5") == 0x2A5
    assert commit_log_offset_of("0" * 31 + "1" + "00002A9F" + "00000000000002A5") == 0x2A5


def test_what_is_no_offset_message_id_is_refused() -> None:
    with pytest.raises(ValueError, match="offset message id must have"):
        commit_log_offset_of("UNIQUE")
