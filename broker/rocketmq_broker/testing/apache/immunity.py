"""CHECK_IMMUNITY_TIME_IN_SECONDS on Apache's broker: it looks at an immune half message at every interval all the same.

Each look writes the half message anew and raises TRANSACTION_CHECK_TIMES, though nobody is asked. So an immunity of many
intervals uses the checks up (TransactionalMessageServiceImpl.check).

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
    """The time in which one transaction is not to be checked."""

    begun_s: float
    seconds: int

    @property
    def end_s(self) -> float:
        """When it is over."""
        return self.begun_s + self.seconds

    def covers(self, now_s: float) -> bool:
        """Whether nobody may be asked at that time."""
        return now_s < self.end_s - _MOMENT_S


def find_immunity(encoded_properties: bytes, now_s: float) -> Immunity | None:
    """The immunity of a half message that comes now; None where it has none, or none that can be read."""
    text = props.find(encoded_properties, _NAME)
    try:
        seconds = int(text) if text is not None else -1
    except ValueError:
        return None
    return Immunity(now_s, seconds) if seconds >= 0 else None


def looked_at_every(interval_s: float, encoded_properties: bytes) -> bytes:
    """Properties with which this broker looks at the half message at each interval, as Apache's does, and not only afterwards."""
    return props.put(encoded_properties, _NAME, str(max(1, int(interval_s))))


def looks_until_asked(immunity: Immunity | None, first_look_s: float, interval_s: float) -> int:
    """How many intervals after its first look, at that time, a transaction is asked about: 0 if it is not immune then."""
    if immunity is None or not immunity.covers(first_look_s):
        return 0
    return math.ceil((immunity.end_s - _MOMENT_S - first_look_s) / interval_s)
