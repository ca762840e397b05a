"""Encodes long tables and lists in steps, so that the event loop is not blocked."""

from collections.abc import Callable, Generator, Iterable
from typing import Final, TypeVar

from rocketmq_broker.protocol.codes import ResponseCode
from rocketmq_broker.protocol.frame import MAX_FRAME_LENGTH
from rocketmq_broker.remoting.dispatcher import RequestRefused

MAX_ANSWER_LENGTH: Final = MAX_FRAME_LENGTH - 64 * 1024

K = TypeVar("K")
T = TypeVar("T")


def table_in_steps(
    entries: Iterable[tuple[K, T]], encode: Callable[[dict[K, T]], bytes], *, at_once: int, advice: str
) -> Generator[None, None, bytes]:
    """Encodes a body with one table that contains all entries. Yields after every `at_once` entries.

    `encode` encodes the body with some of the entries. Raises RequestRefused, with `advice` in its text, if the whole body
    is too long for a frame.
    """
    return _in_steps(entries, lambda part: encode(dict(part)), b"{}", at_once=at_once, advice=advice)


def list_in_steps(
    entries: Iterable[T], encode: Callable[[list[T]], bytes], *, at_once: int, advice: str
) -> Generator[None, None, bytes]:
    """Encodes a body whose first list contains all entries. Otherwise works like `table_in_steps`."""
    return _in_steps(entries, encode, b"[]", at_once=at_once, advice=advice)


def refuse_long(length: int, advice: str) -> None:
    """Raises RequestRefused, with `advice` in its text, if a response of `length` bytes is too long for a frame."""
    if length > MAX_ANSWER_LENGTH:
        remark = f"response too long: more than {MAX_ANSWER_LENGTH} bytes; {advice}"
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, remark)


def _in_steps(
    entries: Iterable[T], encode: Callable[[list[T]], bytes], brackets: bytes, *, at_once: int, advice: str
) -> Generator[None, None, bytes]:
    begins, _, ends = encode([]).partition(brackets)
    parts: list[bytes] = []
    length = 0
    part: list[T] = []
    for entry in entries:
        part.append(entry)
        if len(part) >= at_once:
            parts.append(encode(part)[len(begins) + 1 : -len(ends) - 1])
            length += len(parts[-1])
            refuse_long(length, advice)
            part = []
            yield
    if part:
        parts.append(encode(part)[len(begins) + 1 : -len(ends) - 1])
        refuse_long(length + len(parts[-1]), advice)
    return begins + brackets[:1] + b",".join(parts) + brackets[1:] + ends
