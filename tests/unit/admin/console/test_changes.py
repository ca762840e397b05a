"""A refresh of a live part sends only the changed lines."""

import json

from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.admin.console.live import changes_of


def applied(old: str, changes: str) -> str:
    """Applies `changes` to the old text of a part of the page, as the page's script does, and returns the new text."""
    lines = old.split("\n")
    for begin, end, fresh in reversed(json.loads(changes)):
        lines[begin:end] = fresh
    return "\n".join(lines)


PARTS = st.lists(st.sampled_from(["<tr>", "<td>1</td>", "<td>2</td>", "</tr>", ""])).map("\n".join)


@given(PARTS, PARTS)
def test_the_old_part_and_the_changes_make_the_new_part(old: str, new: str) -> None:
    changes = changes_of(old, new)
    assert changes is None or applied(old, changes) == new


def test_a_countdown_and_a_further_row_are_all_that_is_sent_of_a_long_part() -> None:
    rows = [f"<tr><td>check-back {number}</td></tr>" for number in range(500)]
    old, new = "\n".join(["in 2 s", *rows]), "\n".join(["in 1 s", *rows, "<tr><td>COMMIT</td></tr>"])
    assert changes_of(old, new) == '[[0,1,["in 1 s"]],[501,501,["<tr><td>COMMIT</td></tr>"]]]'


def test_a_part_that_is_all_new_is_sent_whole() -> None:
    assert changes_of("one", "two") is None


def test_a_part_too_long_to_compare_is_sent_whole() -> None:
    assert changes_of("a\n" * 5000, "a\n" * 5001) is None
