from demo.reaper import groups_left


def test_a_group_that_was_announced_is_left() -> None:
    assert groups_left(["+17\n", "+18\n"]) == {17, 18}


def test_a_group_that_was_taken_back_is_not_left() -> None:
    assert groups_left(["+17\n", "+18\n", "-17\n"]) == {18}


def test_a_restarted_process_counts_by_its_new_group() -> None:
    assert groups_left(["+17\n", "-17\n", "+21\n"]) == {21}


def test_taking_back_what_was_never_announced_is_harmless() -> None:
    assert groups_left(["-17\n"]) == set()
