"""Tests how untrusted text is made safe for a screen."""

import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.message.text.printable import printable, visible_json, visible_name


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


NAMES = st.text(st.sampled_from(list("ab\\ \u200b\u202e\u2028\u3164\ufe0f\u00a0\n李🎉")), max_size=8)


def test_names_that_look_alike_are_shown_apart() -> None:
    shown = [
        visible_name(name) for name in ("ada", "ada ", " ada", "a da", "a  da", "a\u200bda", "ad\ufe0fa", "\u3164", "ada\u2028")
    ]
    assert shown == [
        "ada", "ada\\x20", "\\x20ada", "a da", "a \\x20da", "a\\u200bda", "ad\\ufe0fa", "\\u3164", "ada\\u2028",
    ]  # fmt: skip


@given(NAMES, NAMES)
def test_two_names_are_shown_alike_only_if_they_are_one(one: str, other: str) -> None:
    assert (visible_name(one) == visible_name(other)) == (one == other)
    assert visible_name(one).isprintable()


@given(st.text(max_size=30))
def test_json_says_the_same_with_what_is_not_seen_escaped(text: str) -> None:
    written = msgspec.json.encode({"name": text}).decode()
    assert json.loads(visible_json(written)) == {"name": text}
    assert visible_json(written).isprintable()
    assert visible_json('"李🎉"') == '"李🎉"'
