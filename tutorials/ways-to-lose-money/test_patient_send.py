"""Tests the solution of the exercise: repeated sends help if the broker is down, but not if the process dies."""

from pathlib import Path

import pytest

from tutorials.race.running import play_cell

FILE = Path(__file__).with_name("patient_send.py")


@pytest.mark.parametrize(("fault", "loses"), [("broker-down", False), ("dies-after-commit", True)])
def test_patience_helps_against_a_broker_that_is_down_and_not_against_a_death(fault: str, loses: bool) -> None:
    figures = play_cell("patient-send", fault, 15, 14, FILE)
    assert figures.struck > 0
    assert (figures.missing > 0) == loses
