"""Checks the arguments of calls. A TypeError or ValueError describes the mistake and how to correct it."""

from collections.abc import Iterable, Sequence

from rocketmq_broker.message import MessageQueue
from rocketmq_broker.message.text.mistakes import kind_of


def check_queue(queue: object) -> None:
    """Raises TypeError unless `queue` is a MessageQueue."""
    if not isinstance(queue, MessageQueue):
        raise TypeError(f"queue must be a MessageQueue, not {kind_of(queue)}; `await client.queues(topic)` lists them")


def check_queues(queues: object) -> None:
    """Raises TypeError unless `queues` is a collection of queues."""
    if isinstance(queues, MessageQueue | str) or not isinstance(queues, Iterable):
        raise TypeError(f"queues must be a list of MessageQueue, not {kind_of(queues)}; `await client.queues(topic)` returns one")


def check_target(queue: object, timeout_ms: object) -> None:
    """Raises TypeError or ValueError unless `queue` and `timeout_ms` are valid for a send. Either may be None."""
    if queue is not None:
        check_queue(queue)
    if timeout_ms is not None:
        check_number("timeout_ms", timeout_ms, minimum=1)


def check_batch(messages: object) -> None:
    """Raises TypeError unless `messages` is a list."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes):
        raise TypeError(f"messages must be a list of messages, not {kind_of(messages)}")


def check_number(name: str, value: object, *, minimum: int) -> None:
    """Raises TypeError unless the value is an int, and ValueError if it is less than `minimum`."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an int, not {value!r} ({kind_of(value)})")
    if value < minimum:
        raise ValueError(f"{name} must be at least {minimum}, not {value}")
