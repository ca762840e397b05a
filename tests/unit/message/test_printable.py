"""Text of strangers as it may reach a screen."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from broker.message.printable import printable


def test_what_is_printed_as_itself_stays() -> None:
    assert printable("order-1 für 東京 🎉 %DLQ%g") == "order-1 für 東京 🎉 %DLQ%g"


def test_newlines_escapes_bidi_marks_and_lone_surrogates_are_escaped() -> None:
    assert printable("a\r\nb\x1b[2J\x9b\u202e\u2028\udcff\U000e0001") == ("a\\r\\nb\\x1b[2J\\x9b\\u202e\\u2028\\udcff\\U000e0001")


def test_the_rest_of_a_long_text_is_counted() -> None:
    assert printable("x" * 1_000_000, 3) == "xxx... (999997 more characters)"


@given(st.text(st.characters(exclude_categories=()), max_size=200))
def test_any_text_becomes_one_line_that_can_be_encoded(text: str) -> None:
    assert printable(text).isprintable()
    printable(text).encode()
