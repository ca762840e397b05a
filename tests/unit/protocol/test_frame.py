"""Frames are split from a stream, whatever the sizes of the received pieces."""

import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.protocol import FrameDecoder, FrameError, HeaderError, RequestCode, SerializeType, encode_request
from rocketmq_broker.protocol.headers.name_server import GetRouteInfoRequestHeader
from rocketmq_broker.protocol.headers.topic import ViewMessageRequestHeader


def frame(opaque: int = 1, body: bytes = b"", serialize_type: SerializeType = SerializeType.JSON) -> bytes:
    header = ViewMessageRequestHeader(offset=opaque)
    return encode_request(RequestCode.VIEW_MESSAGE_BY_ID, header, body, opaque=opaque, serialize_type=serialize_type)


@given(
    bodies=st.lists(st.binary(max_size=300), max_size=8),
    serialize_type=st.sampled_from(SerializeType),
    data=st.data(),
)
def test_any_split_of_the_stream_gives_the_same_commands(
    bodies: list[bytes], serialize_type: SerializeType, data: st.DataObject
) -> None:
    stream = b"".join(frame(opaque, body, serialize_type) for opaque, body in enumerate(bodies))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    decoder = FrameDecoder()
    commands = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        commands += decoder.feed(stream[start:end])
    assert [(command.opaque, command.body) for command in commands] == list(enumerate(bodies))
    assert decoder.buffered_length == 0


def feed_in_pieces(data: bytes, length: int) -> None:
    decoder = FrameDecoder()
    for start in range(0, len(data), length):
        decoder.feed(data[start : start + length])


def test_a_frame_that_comes_byte_by_byte_is_whole_at_its_last_byte() -> None:
    decoder = FrameDecoder()
    whole = frame(7, b"body")
    pieces = [decoder.feed(whole[at : at + 1]) for at in range(len(whole))]
    assert all(commands == [] for commands in pieces[:-1])
    assert [command.opaque for command in pieces[-1]] == [7]


def test_no_more_is_buffered_than_came() -> None:
    decoder = FrameDecoder()
    whole = frame(7, bytes(1_000_000))
    decoder.feed(whole[:500])
    assert decoder.buffered_length == 500


def test_a_large_frame_in_small_pieces_is_copied_a_few_times_only() -> None:
    copied = 0

    class CountingBytes(bytes):
        def __getitem__(self, key: object) -> bytes:
            nonlocal copied
            piece = super().__getitem__(key)  # type: ignore[index]
            copied += len(piece) if isinstance(piece, bytes) else 0
            return piece

    whole = frame(7, bytes(1024 * 1024))
    decoder = FrameDecoder()
    commands = []
    for start in range(0, len(whole), 4096):
        commands += decoder.feed(CountingBytes(whole[start : start + 4096]))
    assert len(commands) == 1
    assert copied <= 2 * len(whole)


@pytest.mark.parametrize("pieces", [1, 4, 100])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (struct.pack(">i", -1) + bytes(4), "bytes, not -1"),
        (struct.pack(">i", 3) + bytes(4), "bytes, not 3"),
        (struct.pack(">i", 16 * 1024 * 1024 - 3) + bytes(4), "bytes, not 16777213"),
        (b"GET / HTTP/1.1\r\n\r\n", "the peer uses HTTP"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "the peer uses HTTP"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "the peer uses HTTP"),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "the peer uses TLS"),
        (b"\x15\x03\x01\x00\x02\x02\x46\x00", "the peer uses TLS"),
        (b"\x16\x04\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "bytes, not 369361154"),
    ],
)
def test_what_is_no_frame_is_refused_by_its_first_bytes(data: bytes, words: str, pieces: int) -> None:
    with pytest.raises(FrameError, match=words):
        feed_in_pieces(data, pieces)


def test_a_frame_longer_than_allowed_is_refused_even_if_it_comes_at_once() -> None:
    whole = frame(7, bytes(1000))
    assert len(FrameDecoder(len(whole)).feed(whole)) == 1
    with pytest.raises(FrameError, match=f"at most {len(whole) - 5}"):
        FrameDecoder(len(whole) - 1).feed(whole)


def test_the_commands_before_the_damage_are_not_lost() -> None:
    decoder = FrameDecoder()
    assert [command.opaque for command in decoder.feed(frame(1) + frame(2) + b"GET / HTTP/1.1")] == [1, 2]
    assert "HTTP" in str(decoder.failure)
    with pytest.raises(FrameError, match="HTTP"):
        decoder.feed(b"")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (struct.pack(">I", 100) + b"{}", "too long for its frame"),
        (struct.pack(">I", 2) + b"{}", "not valid JSON for a command"),
        (struct.pack(">I", 9) + b'{"code":1', "not valid JSON for a command"),
        (
            struct.pack(">I", 30_000) + (b'{"code":1,"opaque":1,"extFields":' + b"[" * 30_000)[:30_000],
            "not valid JSON for a command",
        ),
        (struct.pack(">I", 6) + b"\xff\xfe\x00\x01{}", "not valid JSON for a command"),
        (struct.pack(">I", 2 << 24 | 2) + b"{}", "serializer of a header .* not 2"),
        (struct.pack(">I", 1 << 24 | 4) + b"\0\0\0\0", "must have at least"),
        (struct.pack(">I", 1 << 24 | 21) + struct.pack(">hbhiiii", 1, 0, 0, 0, 0, -5, 0), "remark length .*: -5"),
        (struct.pack(">I", 1 << 24 | 21) + struct.pack(">hbhiiii", 1, 0, 0, 0, 0, 0, 9), "extension fields 9"),
        (struct.pack(">I", 1 << 24 | 21) + struct.pack(">hbhiiii", 1, 0, 0, 0, 0, 0, -9), "extension fields -9"),
    ],
)
def test_a_torn_header_is_refused(content: bytes, words: str) -> None:
    with pytest.raises(FrameError, match=words):
        FrameDecoder().feed(struct.pack(">I", len(content)) + content)


@given(st.binary(max_size=64))
def test_garbage_is_refused_or_waited_for_but_never_a_surprise(garbage: bytes) -> None:
    for prefix in (b"", struct.pack(">I", len(garbage))):
        with contextlib.suppress(FrameError):
            FrameDecoder().feed(prefix + garbage)


@given(st.binary(max_size=40), st.sampled_from(SerializeType), st.data())
def test_a_damaged_frame_is_a_frame_error_or_another_command(
    damage: bytes, serialize_type: SerializeType, data: st.DataObject
) -> None:
    header = GetRouteInfoRequestHeader(topic="topic")
    whole = encode_request(RequestCode.GET_ROUTEINFO_BY_TOPIC, header, b"body", opaque=1, serialize_type=serialize_type)
    at = data.draw(st.integers(0, len(whole)))
    damaged = whole[:at] + damage + whole[at + len(damage) :]
    with contextlib.suppress(FrameError):
        for command in FrameDecoder().feed(damaged):
            with contextlib.suppress(HeaderError):
                command.decode_header(GetRouteInfoRequestHeader)
