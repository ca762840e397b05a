"""Bodies are shown to a reader as JSON with line breaks, as plain text, or as hex."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.admin.output.shown_bodies import ShownBody, shown_body


def shown(body: bytes) -> ShownBody:
    try:
        text = body.decode()
    except UnicodeDecodeError:
        text = None
    return shown_body(text, base64.b64encode(body).decode())


def test_json_gets_line_breaks_and_its_numbers_and_doubled_names_stay() -> None:
    kind, text = shown(b'{"price":1.10,"items":["a, b",{}],"price":9007199254740993}')
    assert kind == "JSON"
    assert text == '{\n  "price": 1.10,\n  "items": [\n    "a, b",\n    {}\n  ],\n  "price": 9007199254740993\n}'


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda one: st.lists(one) | st.dictionaries(st.text(), one)
)


@given(st.lists(JSON_VALUES) | st.dictionaries(st.text(), JSON_VALUES))
def test_json_with_line_breaks_is_the_same_json(value: object) -> None:
    kind, text = shown(json.dumps(value).encode())
    assert kind == "JSON"
    assert json.loads(text) == value


@pytest.mark.parametrize("body", [b"", b"paid", b"12", b"{half", b"[" * 50_000, b"[1" * 20])
def test_what_is_no_json_object_is_text_as_it_is(body: bytes) -> None:
    assert shown(body) == ("text", body.decode())


def test_bytes_that_are_no_text_are_shown_in_hex_beside_their_letters() -> None:
    kind, text = shown(b"\xff\x00Order 17 is paid")
    assert kind == "hex"
    assert text.splitlines() == [
        "0000  ff 00 4f 72 64 65 72 20 31 37 20 69 73 20 70 61  ··Order 17 is pa",
        "0010  69 64                                            id",
    ]


def test_a_long_body_is_cut_with_a_word_on_the_rest() -> None:
    assert shown(b"\xff" * 2000).text.splitlines()[-1] == "(976 more bytes)"
    assert shown(b"x" * 70_000).text.endswith("(4,464 more characters)")
