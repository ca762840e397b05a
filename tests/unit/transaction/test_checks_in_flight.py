import pytest

from rocketmq_broker.transaction.checking.checks_in_flight import ChecksInFlight


def may_ask(checks: ChecksInFlight[str], producer: str, offset: int, now_ms: int) -> bool:
    checks.notice_time(now_ms)
    return checks.may_ask(producer, offset)


def test_a_producer_is_asked_no_more_than_it_can_hold() -> None:
    checks = ChecksInFlight[str](limit=2)
    for offset in (1, 2):
        assert may_ask(checks, "a", offset, 0)
        checks.asked("a", offset, 0)

    assert not may_ask(checks, "a", 3, 0)
    assert may_ask(checks, "b", 3, 0)


def test_an_answer_makes_room() -> None:
    checks = ChecksInFlight[str](limit=1)
    checks.asked("a", 1, 0)

    checks.answered("a", 2)
    assert not may_ask(checks, "a", 3, 0)
    checks.answered("a", 1)
    assert may_ask(checks, "a", 3, 0)


def test_a_producer_is_not_asked_about_a_transaction_that_it_owes_the_answer_about() -> None:
    checks = ChecksInFlight[str](answer_timeout_ms=1000)
    checks.asked("a", 1, 0)

    assert not may_ask(checks, "a", 1, 999)
    assert may_ask(checks, "b", 1, 999)
    assert may_ask(checks, "a", 2, 999)
    assert may_ask(checks, "a", 1, 1000)


def test_an_answer_is_owed_until_it_comes_or_its_time_is_over() -> None:
    checks = ChecksInFlight[str](answer_timeout_ms=1000)
    checks.asked("a", 1, 100)
    checks.asked("b", 1, 600)

    assert checks.owed_since_ms(["a", "b"], 1) == 100
    assert checks.owed_since_ms(["b", "c"], 1) == 600
    assert checks.owed_since_ms(["a", "b"], 2) is None
    checks.notice_time(1100)
    assert checks.owed_since_ms(["a", "b"], 1) == 600
    checks.answered("b", 1)
    assert checks.owed_since_ms(["a", "b"], 1) is None


def test_a_producer_that_lets_a_check_time_out_is_asked_about_one_transaction_at_a_time() -> None:
    checks = ChecksInFlight[str](answer_timeout_ms=1000)
    for offset in (1, 2):
        checks.asked("a", offset, 0)

    assert may_ask(checks, "a", 1, 1000)
    assert checks.is_silent("a")
    checks.asked("a", 1, 1000)
    assert not may_ask(checks, "a", 2, 1999)
    assert may_ask(checks, "a", 2, 2000)
    checks.asked("a", 2, 2000)
    checks.answered("a", 2)
    assert not checks.is_silent("a")
    for offset in (1, 3):
        assert may_ask(checks, "a", offset, 2001)
        checks.asked("a", offset, 2001)


def test_a_check_that_is_never_answered_stops_counting() -> None:
    checks = ChecksInFlight[str](limit=2, answer_timeout_ms=1000)
    checks.asked("a", 1, 0)
    checks.asked("a", 2, 600)

    assert not may_ask(checks, "a", 3, 999)
    assert not may_ask(checks, "a", 3, 1599)
    assert checks.count("a") == 1
    assert may_ask(checks, "a", 3, 1600)


@pytest.mark.parametrize("step_ms", [1_000_000, -1_000_000])
def test_a_clock_that_is_set_leaves_a_producer_as_much_time_to_answer_as_it_had(step_ms: int) -> None:
    checks = ChecksInFlight[str](answer_timeout_ms=1000)
    checks.asked("a", 1, 100)
    checks.asked("a", 2, 300)

    checks.clock_stepped(step_ms)

    assert not may_ask(checks, "a", 1, 1099 + step_ms)
    assert checks.owed_since_ms(["a"], 1) == 100 + step_ms
    assert not checks.is_silent("a")
    checks.notice_time(1100 + step_ms)
    assert checks.owed_since_ms(["a"], 1) is None
    assert checks.owed_since_ms(["a"], 2) == 300 + step_ms


def test_a_clock_that_is_slewed_back_a_little_ends_no_time_to_answer() -> None:
    checks = ChecksInFlight[str](answer_timeout_ms=1000)
    checks.asked("a", 1, 1000)

    checks.notice_time(995)

    assert checks.owed_since_ms(["a"], 1) == 1000
    assert not checks.is_silent("a")


def test_a_second_check_of_a_transaction_counts_once() -> None:
    checks = ChecksInFlight[str](limit=2)
    checks.asked("a", 1, 0)
    checks.asked("a", 1, 5)

    assert checks.count("a") == 1


def test_a_producer_that_leaves_gives_back_what_it_did_not_answer() -> None:
    checks = ChecksInFlight[str](answer_timeout_ms=1000)
    for offset in (1, 2, 3):
        checks.asked("a", offset, 0)
    checks.answered("a", 2)
    assert may_ask(checks, "a", 1, 1000)
    checks.asked("a", 1, 1000)
    checks.asked("b", 1, 1000)
    assert checks.unanswered() == {1: 3, 3: 1}
    assert [checks.unanswered_about(offset) for offset in (1, 2, 3)] == [3, 0, 1]

    assert checks.departed("a") == {1: 2, 3: 1}
    assert checks.unanswered() == {1: 1}
    assert checks.departed("a") == {}


def test_what_an_answering_producer_let_time_out_is_not_given_back() -> None:
    checks = ChecksInFlight[str](answer_timeout_ms=1000)
    checks.asked("a", 1, 0)
    assert may_ask(checks, "a", 2, 1000)
    checks.asked("a", 2, 1000)
    checks.answered("a", 2)

    assert checks.departed("a") == {}


def test_nothing_is_kept_for_a_producer_that_left() -> None:
    checks = ChecksInFlight[str](limit=1)
    checks.asked("a", 1, 0)
    checks.departed("a")

    assert may_ask(checks, "a", 1, 0)
    assert not checks._owed


def test_a_change_of_the_counts_can_be_detected() -> None:
    checks = ChecksInFlight[str]()
    seen = [checks.changes]
    checks.asked("a", 1, 0)
    seen.append(checks.changes)
    checks.answered("a", 1)
    seen.append(checks.changes)
    checks.asked("a", 1, 0)
    checks.departed("a")
    seen.append(checks.changes)

    assert len(set(seen)) == len(seen)


def test_a_check_that_another_producer_repeated_gives_nothing_back_after_its_time_is_over() -> None:
    checks = ChecksInFlight[str](answer_timeout_ms=1000)
    checks.asked("a", 1, 0)
    checks.repeated_by("b", 1, 10)
    checks.notice_time(1010)

    assert checks.departed("b").get(1, 0) == 0
    assert checks.departed("a") == {1: 1}
