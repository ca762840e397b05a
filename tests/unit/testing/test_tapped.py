"""Tests a transport whose frames an observer can see."""

import asyncio
import struct
from typing import Any

from rocketmq_broker.testing.tapped import Tapped, frames


class Written(asyncio.Transport):
    """A transport that keeps the written data."""

    def __init__(self, peername: object = ("127.0.0.1", 5)) -> None:
        super().__init__({"peername": peername})
        self.data = b""
        self.is_shut = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += data

    def close(self) -> None:
        self.is_shut = True


def frame(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def test_what_is_left_of_a_write_leaves() -> None:
    seen: list[tuple[Any, str, bytes]] = []

    def without_secrets(transport: asyncio.Transport, peer: str, data: bytes) -> bytes:
        seen.append((transport, peer, data))
        return data.replace(b"secret", b"")

    transport = Written()
    tapped = Tapped(transport, without_secrets)
    tapped.write(bytearray(b"a secret word"))
    assert seen == [(transport, "127.0.0.1:5", b"a secret word")]
    assert transport.data == b"a  word"


def test_where_nothing_is_left_nothing_is_written() -> None:
    class Silent(Written):
        def write(self, data: bytes | bytearray | memoryview) -> None:
            raise AssertionError("unexpected write")

    Tapped(Silent(), lambda transport, peer, data: b"").write(b"all of it")


def test_all_else_is_the_transports_own() -> None:
    transport = Written()
    tapped = Tapped(transport, lambda transport, peer, data: data)
    assert tapped.get_extra_info("peername") == ("127.0.0.1", 5)
    tapped.close()
    assert transport.is_shut


def test_a_transport_without_a_peer_has_a_name_all_the_same() -> None:
    assert Tapped(Written(None), lambda transport, peer, data: data).peer == "?:0"


def test_a_write_is_divided_into_its_frames_the_last_one_perhaps_incomplete() -> None:
    assert list(frames(b"")) == []
    assert list(frames(frame(b"one") + frame(b"") + frame(b"three"))) == [frame(b"one"), frame(b""), frame(b"three")]
    assert list(frames(frame(b"12") + frame(b"12")[:5])) == [frame(b"12"), frame(b"12")[:5]]
    assert list(frames(frame(b"12") + b"\x00\x00")) == [frame(b"12"), b"\x00\x00"]
