import pytest

from service_runtime.failing.trying_again import try_until_done


def test_pauses_double_up_to_ten_seconds_until_it_is_done() -> None:
    answers, pauses = iter([False] * 7 + [True]), list[float]()
    try_until_done(lambda: next(answers), pauses.append)
    assert pauses == [0.5, 1, 2, 4, 8, 10, 10]


def test_what_works_at_once_waits_for_nothing() -> None:
    try_until_done(lambda: True, lambda _: pytest.fail("there was a pause"))


def test_a_pause_that_is_ended_from_outside_ends_the_trying() -> None:
    def withdraw(_: float) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        try_until_done(lambda: False, withdraw)
