"""Tests the recorded check-backs."""

from rocketmq_broker.message import sysflag
from rocketmq_broker.transaction.checking.check_backs import CheckBack, CheckBacks


def test_a_check_back_has_whom_when_and_what_was_answered() -> None:
    check_backs = CheckBacks()
    check_backs.asked(7, "10.0.0.1:5", 1000)
    check_backs.asked(7, "10.0.0.2:5", 2000)
    check_backs.answered(7, "10.0.0.2:5", sysflag.TRANSACTION_COMMIT_TYPE, 2100)
    assert check_backs.of(7) == (
        CheckBack(1000, "10.0.0.1:5"),
        CheckBack(2000, "10.0.0.2:5", sysflag.TRANSACTION_COMMIT_TYPE, 2100),
    )
    assert check_backs.of(8) == ()


def test_an_answer_to_no_question_on_record_is_passed_over() -> None:
    check_backs = CheckBacks()
    check_backs.answered(7, "10.0.0.1:5", sysflag.TRANSACTION_COMMIT_TYPE, 1000)
    check_backs.asked(7, "10.0.0.1:5", 2000)
    check_backs.answered(7, "10.0.0.9:5", sysflag.TRANSACTION_COMMIT_TYPE, 2100)
    assert check_backs.of(7) == (CheckBack(2000, "10.0.0.1:5"),)


def test_the_transactions_asked_about_longest_ago_are_forgotten_first() -> None:
    check_backs = CheckBacks(max_count=3)
    for now_ms, offset in enumerate((1, 2, 1, 3)):
        check_backs.asked(offset, "10.0.0.1:5", now_ms)
    assert [len(check_backs.of(offset)) for offset in (1, 2, 3)] == [2, 0, 1]
