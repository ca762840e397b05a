"""TLS and HTTP at the wrong port are recognized by four bytes, and are never read as the length of a frame."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketmq_broker.protocol import MAX_FRAME_LENGTH, FrameDecoder, FrameError
from rocketmq_broker.protocol.errors import OtherProtocol
from rocketmq_broker.protocol.other_protocols import meaning, other_protocol


@given(st.integers(4, MAX_FRAME_LENGTH - 4))
def test_no_length_of_a_frame_is_taken_for_another_protocol(length: int) -> None:
    assert other_protocol(length.to_bytes(4)) is None


@pytest.mark.parametrize(
    ("beginning", "protocol"),
    [
        (b"\x16\x03\x01\x02", "TLS"),
        (b"\x16\x03\x03\x00", "TLS"),
        (b"\x15\x03\x03\x00", "TLS"),
        (b"\x14\x03\x03\x00", None),
        (b"\x16\x02\x00\x00", None),
        (b"GET ", "HTTP"),
        (b"POST", "HTTP"),
        (b"PRI ", "HTTP"),
        (b"HTTP", "HTTP"),
        (b"get ", None),
        (b"\0\0\0\0", None),
    ],
)
def test_a_connection_is_known_by_its_first_bytes(beginning: bytes, protocol: str | None) -> None:
    assert other_protocol(beginning) == protocol


def test_the_meaning_says_what_can_be_done() -> None:
    assert "tls.server.mode" in meaning("TLS")
    assert "check the port" in meaning("HTTP")


@pytest.mark.parametrize(("data", "protocol"), [(b"GET / HTTP/1.1\r\n", "HTTP"), (b"\x16\x03\x01\x02\x00", "TLS")])
def test_the_error_names_the_protocol(data: bytes, protocol: str) -> None:
    with pytest.raises(OtherProtocol) as refused:
        FrameDecoder().feed(data)
    assert refused.value.protocol == protocol
    assert isinstance(refused.value, FrameError)
