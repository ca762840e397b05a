import pytest

from rocketmq_broker.cluster.child import Restarts, ending_text

SHORT_S = 1.0
STEADY_S = 60.0


def test_the_pause_doubles_up_to_half_a_minute_and_the_tenth_restart_is_the_last() -> None:
    restarts = Restarts()
    pauses = [restarts.pause_s(1, SHORT_S) for _ in range(11)]
    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30, 30, None]


def test_a_steady_life_begins_a_new_row() -> None:
    restarts = Restarts()
    for _ in range(10):
        restarts.pause_s(-9, SHORT_S)
    assert restarts.pause_s(-9, STEADY_S) == 0.5
    assert restarts.in_a_row == 1


def test_a_broker_whose_disk_broke_the_store_is_started_again() -> None:
    assert Restarts().pause_s(3, SHORT_S) == 0.5


def test_wrong_settings_are_not_tried_again() -> None:
    assert Restarts().pause_s(2, STEADY_S) is None


@pytest.mark.parametrize(
    ("status", "text"),
    [
        (-9, "was killed by SIGKILL"),
        (-99, "was killed by signal 99"),
        (0, "ended normally (exit status 0)"),
        (3, "ended with exit status 3"),
    ],
)
def test_an_end_is_told_in_words(status: int, text: str) -> None:
    assert ending_text(status) == text
