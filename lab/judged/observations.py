"""What customers, consumers and readers of the databases observe during a run. All times are of one monotonic clock."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Interval:
    """The time of a request, in nanoseconds. What it observed was so at a moment between call and return."""

    call_ns: int
    return_ns: int


@dataclass(frozen=True, slots=True)
class ObservedRequest:
    """A customer's request, and the response. Without a response `status` is None."""

    key: str
    """The Idempotency-Key of the order, which is the same in all requests about it."""
    name: str
    """`place`, `place later`, `place too much`, `pay` or `cancel`."""
    at: Interval
    status: int | None
    order_id: str = ""


@dataclass(frozen=True, slots=True)
class ObservedPull:
    """A response to a pull of a queue. Each message is its queue offset and its order."""

    queue: str
    offset: int
    at: Interval
    messages: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class ObservedConsumption:
    """A message that the listener of the orderly consumer group has consumed, or has failed to consume."""

    queue: str
    offset: int
    order_id: str
    at: Interval
    is_success: bool


@dataclass(frozen=True, slots=True)
class ObservedState:
    """The state of an order's transaction in the order database; empty without a row."""

    order_id: str
    at: Interval
    state: str


@dataclass(frozen=True, slots=True)
class ObservedCredits:
    """A change in the number of an order's credits, by two successive reads of the ledger."""

    order_id: str
    before: int
    before_at: Interval
    after: int
    after_at: Interval


@dataclass(frozen=True, slots=True)
class ObservedEnd:
    """The databases and the queues after the last fault, when nothing is left to do."""

    at: Interval
    keys: Mapping[str, str]
    """The Idempotency-Key of each stored order."""
    credits: Mapping[str, int]
    """The number of credits by order."""
    queues: Mapping[str, tuple[str, ...]]
    """The orders of each queue, by queue offset."""


Observed = ObservedRequest | ObservedPull | ObservedConsumption | ObservedState | ObservedCredits


@dataclass(frozen=True)
class Observations:
    """The observations of a run. Thread-safe."""

    found: list[Observed] = field(default_factory=list)
    is_over: threading.Event = field(default_factory=threading.Event)
    """Set when customers place no more orders."""
    is_settled: threading.Event = field(default_factory=threading.Event)
    """Set when consumers and readers may stop."""


@dataclass(frozen=True, slots=True)
class Timed(Generic[T]):
    """A value, and the time in which it was obtained."""

    value: T
    at: Interval


def timed(call: Callable[[], T]) -> Timed[T]:
    """Calls the function, and returns its result with the time of the call."""
    called = time.monotonic_ns()
    value = call()
    return Timed(value, Interval(called, time.monotonic_ns()))
