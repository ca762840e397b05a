from broker.transaction.checks_in_flight import ChecksInFlight


def test_a_producer_is_asked_no_more_than_it_can_hold() -> None:
    checks = ChecksInFlight[str](limit=2)
    for offset in (1, 2):
        assert checks.may_ask("a", 0)
        checks.asked("a", offset, 0)

    assert not checks.may_ask("a", 0)
    assert checks.may_ask("b", 0)


def test_an_answer_makes_room() -> None:
    checks = ChecksInFlight[str](limit=1)
    checks.asked("a", 1, 0)

    checks.answered("a", 2)
    assert not checks.may_ask("a", 0)
    checks.answered("a", 1)
    assert checks.may_ask("a", 0)


def test_a_check_that_is_never_answered_stops_counting() -> None:
    checks = ChecksInFlight[str](limit=2, answer_timeout_ms=1000)
    checks.asked("a", 1, 0)
    checks.asked("a", 2, 600)

    assert not checks.may_ask("a", 999)
    assert checks.may_ask("a", 1000)
    assert checks.count("a") == 1


def test_a_clock_set_back_does_not_block_a_producer() -> None:
    checks = ChecksInFlight[str](limit=1, answer_timeout_ms=1000)
    checks.asked("a", 1, 1_000_000)

    assert checks.may_ask("a", 5)


def test_a_second_check_of_a_transaction_counts_once() -> None:
    checks = ChecksInFlight[str](limit=2)
    checks.asked("a", 1, 0)
    checks.asked("a", 1, 5)

    assert checks.count("a") == 1


def test_nothing_is_kept_for_a_producer_that_left() -> None:
    checks = ChecksInFlight[str](limit=1)
    checks.asked("a", 1, 0)
    checks.departed("a")

    assert checks.may_ask("a", 0)
    assert not checks._sent
