"""Tests Java's properties format: escapes, continued lines, and that reading returns what was written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.protocol.java_properties import parse_properties, property_line

words = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=10)


@given(st.dictionaries(words, st.text(max_size=20).map(str.strip), max_size=5))
def test_properties_that_were_written_are_read_as_they_were(properties: dict[str, str]) -> None:
    text = "".join(property_line(name, value) for name, value in properties.items())
    assert text.count("\n") == len(properties)
    assert parse_properties(text) == properties


def test_what_cannot_be_printed_is_escaped_as_java_escapes_it() -> None:
    assert property_line("name", "a\\b\n\x1b\U0001d11e") == "name=a\\\\b\\u000a\\u001b\U0001d11e\n"
    assert property_line("name", "\U000e0001") == "name=\\udb40\\udc01\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("listenPort=10911", {"listenPort": "10911"}),
        ("  listenPort = 10911", {"listenPort": "10911"}),
        ("listenPort:10911", {"listenPort": "10911"}),
        ("listenPort 10911", {"listenPort": "10911"}),
        ("# listenPort=1\n! listenPort=2\n\n", {}),
        ("messageDelayLevel=1s 5s 10s", {"messageDelayLevel": "1s 5s 10s"}),
        ("namesrvAddr=a:1;\\\n    b:2", {"namesrvAddr": "a:1;b:2"}),
        ("path=C\\:\\\\store", {"path": "C:\\store"}),
        ("a\\=b=c", {"a=b": "c"}),
        ("name=caf\\u00e9", {"name": "café"}),
        ("empty=", {"empty": ""}),
        ("lonely", {"lonely": ""}),
        ("port=1\nport=2", {"port": "2"}),
        ("brokerName=a\r\nlistenPort=1\r\n", {"brokerName": "a", "listenPort": "1"}),
        ("a=1\\\n", {"a": "1"}),
        ("a=1\\", {"a": "1"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\\n# no comment", {"a": "1# no comment"}),
        ("a=\\t\\n\\r\\f\\x", {"a": "\t\n\r\fx"}),
        ("a=\\u00e9\\u4e2d", {"a": "é中"}),
        ("a=\\ud834\\udd1e", {"a": "\U0001d11e"}),
        ("a=\\ud834", {"a": "\ud834"}),
        ("a=\\u00zz", {"a": "u00zz"}),
        ("a b=c", {"a": "b=c"}),
        ("a = = b", {"a": "= b"}),
        ("a:=b", {"a": "=b"}),
        ("a\\ b=c", {"a b": "c"}),
        ("a\\:b:c", {"a:b": "c"}),
        ("=value", {"": "value"}),
        ("", {}),
        ("\n\n   \n", {}),
        ("#a=1", {}),
        ("a=# no comment", {"a": "# no comment"}),
        ("a=1 ", {"a": "1 "}),
        ("\ta\t=\t1", {"a": "1"}),
    ],
)
def test_a_properties_file_reads_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


@given(st.text(max_size=60))
def test_no_text_is_a_surprise(text: str) -> None:
    assert all(isinstance(value, str) for value in parse_properties(text).values())
