"""CHECK_IMMUNITY_TIME_IN_SECONDS on Apache's broker, which looks at an immune half message at each interval nevertheless.

Each look rewrites the half message and raises TRANSACTION_CHECK_TIMES, though nobody is asked. So an immunity of many intervals
uses the checks up (TransactionalMessageServiceImpl.check).

    half message     look         look         look         look
    |----------------|------------|------------|------------|-------> time
    immune ..............................................|   asked from the next look on
                     checks=1     checks=2     checks=3
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message import properties as props

_NAME: Final = props.CHECK_IMMUNITY_TIME_IN_SECONDS
_MOMENT_S: Final = 0.001


@dataclass(frozen=True, slots=True)
class Immunity:
    """The time during which a transaction is not checked."""

    begun_s: float
    seconds: int

    @property
    def end_s(self) -> float:
        """The end of the immunity."""
        return self.begun_s + self.seconds

    def covers(self, now_s: float) -> bool:
        """Returns whether checks are forbidden at that time."""
        return now_s < self.end_s - _MOMENT_S


def find_immunity(encoded_properties: bytes, now_s: float) -> Immunity | None:
    """Reads the immunity of a half message that arrives now; None if it has none, or an unreadable one."""
    text = props.find(encoded_properties, _NAME)
    try:
        seconds = int(text) if text is not None else -1
    except ValueError:
        return None
    return Immunity(now_s, seconds) if seconds >= 0 else None


def looked_at_every(interval_s: float, encoded_properties: bytes) -> bytes:
    """Returns properties that make this broker look at the half message at each interval, as Apache's does."""
    return props.put(encoded_properties, _NAME, str(max(1, int(interval_s))))


def looks_until_asked(immunity: Immunity | None, first_look_s: float, interval_s: float) -> int:
    """Returns the number of intervals between a first look at that time and the first check; 0 without immunity then."""
    if immunity is None or not immunity.covers(first_look_s):
        return 0
    return math.ceil((immunity.end_s - _MOMENT_S - first_look_s) / interval_s)
