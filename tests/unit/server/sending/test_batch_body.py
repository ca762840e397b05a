"""Tests that the body of a batch is split into messages, and that malformed batches are refused."""

import struct

import pytest

from rocketmq_broker.message.errors import IllegalMessage
from rocketmq_broker.server.sending.batch_body import BatchedMessage, split_batch


def encoded(message: BatchedMessage) -> bytes:
    size = 22 + len(message.body) + len(message.properties)
    head = struct.pack(">iiiii", size, 0, 0, message.flag, len(message.body))
    return head + message.body + struct.pack(">h", len(message.properties)) + message.properties


ONE = BatchedMessage(7, b"first", b"KEYS\x01a")
TWO = BatchedMessage(0, b"", b"")


def test_the_messages_come_apart_as_they_were_put_together() -> None:
    assert list(split_batch(encoded(ONE) + encoded(TWO))) == [ONE, TWO]


@pytest.mark.parametrize("cut", range(1, len(encoded(ONE))))
def test_a_torn_batch_is_illegal(cut: int) -> None:
    with pytest.raises(IllegalMessage):
        list(split_batch(encoded(TWO) + encoded(ONE)[:-cut]))


def test_an_empty_batch_is_illegal() -> None:
    with pytest.raises(IllegalMessage):
        list(split_batch(b""))


def test_lengths_that_lie_are_illegal() -> None:
    with pytest.raises(IllegalMessage):
        list(split_batch(struct.pack(">iiiii", 26, 0, 0, 0, -4) + b"abcdef"))
