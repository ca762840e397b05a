"""Tests how the tester reads bytes, and the text of a verdict."""

import json
import sys
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from tutorials.build_your_own.curriculum import STAGES
from tutorials.build_your_own.stages.consume_queue import java_hash_code
from tutorials.build_your_own.tester.connection import frame_text
from tutorials.build_your_own.tester.failed import Compared, Failed
from tutorials.build_your_own.tester.frames import decode_frame, encode_request, frame_length
from tutorials.build_your_own.tester.layout import MAGIC, read_record, read_records
from tutorials.build_your_own.tester.printing import Printer
from tutorials.build_your_own.tester.timeline import Event, Kind
from tutorials.build_your_own.tester.trial import Claim, ClaimFailed
from tutorials.build_your_own.tester.verdict import Verdict

CLAIM = Claim("A thing holds", "Look at the thing.", "broker/rocketmq_broker/message/record.py", "CommitLog")
HELD = Claim("It starts", "", "broker/rocketmq_broker/app/ports.py", "NettyRemotingServer")


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def frame(header: bytes, *, serialize_type: int = 0, header_length: int | None = None) -> bytes:
    length = header_length if header_length is not None else len(header)
    return (4 + len(header)).to_bytes(4) + bytes([serialize_type]) + length.to_bytes(3) + header


@pytest.mark.parametrize(
    ("data", "wanted", "got"),
    [
        (frame(b"{}", serialize_type=1), "SERIALIZETYPE 0", "1: the frame begins with 00 00 00 06 01 00 00 02"),
        (frame(b"{}", header_length=200), "a HEADERLENGTH of at most 2", "200"),
        (frame(b"hello"), "a header that is a JSON object", "hello"),
        (frame(b"[1]"), "a header that is a JSON object", r"\[1\]"),
        (frame(b'{"code":0,"flag":1}'), "a header with the field 'opaque'", '{"code":0,"flag":1}'),
        (frame(b'{"code":0,"flag":1,"opaque":"7"}'), "a header with the integers code, opaque and flag", '"7"'),
        (frame(b'{"code":0,"flag":1,"opaque":7,"extFields":{"queueId":2}}'), "string values only", "queueId is 2"),
    ],
)
def test_a_wrong_frame_is_told_what_is_wrong_with_it(data: bytes, wanted: str, got: str) -> None:
    with pytest.raises(Failed, match=f"wanted .*{wanted}.*; got .*{got}"):
        decode_frame(data)


@pytest.mark.parametrize("data", [b"HTTP/1.1", b"\x10\x00\x00\x00", b"\x00\x00\x00\x03"])
def test_a_length_that_cannot_be_is_told(data: bytes) -> None:
    with pytest.raises(Failed, match="begins with LENGTH"):
        frame_length(data)


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from(["code", "opaque", "flag", "extFields", "remark"]), JSON_VALUES))
def test_a_header_of_any_json_is_read_or_told(header: dict[str, object]) -> None:
    with suppress(Failed):
        frame_text(decode_frame(frame(json.dumps(header).encode())))


@given(st.binary(max_size=200), st.binary(max_size=60))
def test_any_bytes_are_records_or_told(beginning: bytes, end: bytes) -> None:
    with suppress(Failed):
        read_records(beginning + MAGIC.to_bytes(4) + end, "the body")


def test_a_request_is_read_back_as_it_was_written() -> None:
    found = decode_frame(encode_request(10, 7, {"topic": "orders"}, b"body", oneway=True))
    assert (found.code, found.opaque, found.flag, found.fields, found.body) == (10, 7, 2, {"topic": "orders"}, b"body")


def test_a_record_whose_magic_code_is_another_is_shown_with_both() -> None:
    with pytest.raises(Failed, match="magic code") as caught:
        read_record(bytes(100), 0, "the body")
    assert caught.value.fields[1] == Compared("MAGICCODE", bytes(4), MAGIC.to_bytes(4))


def test_a_record_whose_total_size_is_another_is_told_the_sum() -> None:
    data = bytearray(92) + b"\x06orders\x00\x00"
    data[0:8] = (200).to_bytes(4) + MAGIC.to_bytes(4)
    data = data[:88] + b"\x06orders\x00\x00"
    with pytest.raises(Failed, match="200, but the parts add up to 97"):
        read_records(bytes(data), "the body")


@pytest.mark.parametrize(("tag", "code"), [("", 0), ("created", 1028554472), ("paid", 3433164), ("größer", -1233337215)])
def test_the_tester_s_hash_is_java_s(tag: str, code: int) -> None:
    assert java_hash_code(tag) == code


def printed(verdict: Verdict, *, shows_bytes: bool = False, is_short: bool = False) -> str:
    console = Console(file=StringIO(), width=120)
    Printer(console, shows_bytes=shows_bytes).verdict(verdict, is_short=is_short)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def failing(failed: Failed, *events: Event, output: str = "") -> Verdict:
    return Verdict(STAGES[4], (HELD,), ClaimFailed(CLAIM, failed), events, output, 1234)


def test_a_failing_verdict_says_what_was_wanted_what_came_and_where_to_look() -> None:
    text = printed(failing(Failed("a unit", "none", hint="Was it written?"), Event(5, Kind.FILE, "read a file")))
    for part in (
        "5  Consume queue         FAILED  after 1.2 s", "✓ It starts", "✗ A thing holds", "wanted     a unit", "got        none",
        "hint       Was it written?", "hint       Look at the thing.", "tutorials/build_your_own/stages/consume_queue.md",
        "broker/rocketmq_broker/message/record.py", "CommitLog", "5  ▤ read a file",
    ):  # fmt: skip
        assert part in text


def test_a_field_that_differs_is_marked_and_shown_with_the_wanted_bytes() -> None:
    fields = (Compared("SIZE", b"\x00\x01", b"\x00\x01"), Compared("HASH", b"\x00\x02", b"\xff\xfe"))
    text = printed(failing(Failed("a", "b", fields=fields, place="the unit"), Event(5, Kind.FILE, "read a file")))
    assert "        SIZE    00 01\n" in text
    assert "      ✗ HASH    00 02  = 2\n" in text
    assert "wanted  ff fe  = -2\n" in text


def test_an_exchange_that_is_repeated_is_shown_once() -> None:
    events = [
        event
        for number in range(20)
        for event in (
            Event(number, Kind.SENT, f"PULL_MESSAGE (11), opaque {number}"),
            Event(number, Kind.RECEIVED, f"answer 19, opaque {number}"),
        )
    ]
    text = printed(failing(Failed("a", "b"), *events, Event(30, Kind.FILE, "read a file")))
    assert text.count("PULL_MESSAGE") == 1
    assert "… and again, 20 times in all" in text


@pytest.mark.parametrize(
    ("interpreter", "shown"),
    [(Path.cwd() / ".venv" / "bin" / "python", ".venv/bin/python"), (Path("/usr/bin/python3"), "/usr/bin/python3")],
)
def test_the_command_to_go_on_with_names_the_interpreter_that_runs_the_tester(
    monkeypatch: pytest.MonkeyPatch, interpreter: Path, shown: str
) -> None:
    monkeypatch.setattr(sys, "executable", str(interpreter))
    console = Console(file=StringIO(), width=160)
    Printer(console).summary([failing(Failed("a", "b"))], "./my-broker")
    assert isinstance(console.file, StringIO)
    assert f": {shown} -m tutorials.build_your_own test --stage 5 --bytes" in console.file.getvalue()


def test_what_the_broker_printed_cannot_steer_the_terminal() -> None:
    text = printed(failing(Failed("a", "\x1b[2J"), Event(5, Kind.FILE, "\x1b[31m"), output="\x1b]0;title\x07"))
    assert "\x1b" not in text
    assert "\x07" not in text


def test_the_bytes_of_a_frame_are_shown_with_their_names() -> None:
    data = encode_request(34, 7, {}, b"body")
    text = printed(failing(Failed("a", "b"), Event(5, Kind.SENT, "HEART_BEAT", data)), shows_bytes=True)
    assert f"{data[:4].hex(' ')}   LENGTH: {len(data) - 4} bytes follow" in text
    assert "body, 4 bytes" in text


def test_a_verdict_that_passed_is_one_line() -> None:
    text = printed(Verdict(STAGES[0], (HELD,), None, (), "", 900))
    assert text == " 1  Bind and answer       passed  1 of 1 claims hold, 0.9 s\n"
