import pytest

from demo.reaper import groups_left


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (["+17\n", "+18\n"], {17, 18}),
        (["+17\n", "+18\n", "-17\n"], {18}),
        (["+17\n", "-17\n", "+21\n"], {21}),
        (["-17\n"], set()),
    ],
    ids=["announced", "taken back", "a restarted process has a new group", "never announced"],
)
def test_a_group_is_left_that_was_announced_and_not_taken_back(lines: list[str], left: set[int]) -> None:
    assert groups_left(lines) == left
