"""Checks of single calls' arguments: a TypeError or ValueError names the mistake and its correction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.text.mistakes import kind_of


def check_queue(queue: object) -> None:
    """Raises TypeError unless `queue` is a queue."""
    if not isinstance(queue, MessageQueue):
        raise TypeError(f"queue is {kind_of(queue)}; a MessageQueue is expected, as `await client.queues(topic)` lists them")


def check_queues(queues: object) -> None:
    """Raises TypeError unless `queues` is a collection of queues."""
    if isinstance(queues, MessageQueue | str) or not isinstance(queues, Iterable):
        raise TypeError(
            f"queues is {kind_of(queues)}; a list of MessageQueue is expected, as `await client.queues(topic)` gives it"
        )


def check_target(queue: object, timeout_ms: object) -> None:
    """Raises TypeError or ValueError unless a send accepts this queue and this time; None leaves either open."""
    if queue is not None:
        check_queue(queue)
    if timeout_ms is not None:
        check_number("timeout_ms", timeout_ms, least=1)


def check_batch(messages: object) -> None:
    """Raises TypeError unless `messages` is a list."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise TypeError(f"a batch is a list of messages; this is {kind_of(messages)}")


def check_number(name: str, value: object, *, least: int) -> None:
    """Raises TypeError unless the value is a whole number, ValueError if it is too small."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r} ({kind_of(value)}); a whole number is expected")
    if value < least:
        raise ValueError(f"{name} is {value}; at least {least} is expected")
