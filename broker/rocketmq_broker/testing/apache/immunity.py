"""Imitates how Apache's broker handles CHECK_IMMUNITY_TIME_IN_SECONDS. The broker scans immune half messages at each interval.

Each scan rewrites the half message and increments TRANSACTION_CHECK_TIMES, although no check-back is sent. An immunity of many
intervals therefore uses up the maximum number of checks (TransactionalMessageServiceImpl.check).

    half message     scan         scan         scan         scan
    |----------------|------------|------------|------------|-------> time
    immune ..............................................|   checked since this scan
                     checks=1     checks=2     checks=3
"""

import math
from dataclasses import dataclass
from typing import Final

from rocketmq_broker.message import properties as props

_NAME: Final = props.CHECK_IMMUNITY_TIME_IN_SECONDS
_MOMENT_S: Final = 0.001


@dataclass(frozen=True, slots=True)
class Immunity:
    """The period after the arrival of a half message in which its transaction is not checked."""

    begun_s: float
    seconds: int

    @property
    def end_s(self) -> float:
        """The time at which the immunity ends, in seconds."""
        return self.begun_s + self.seconds

    def covers(self, now_s: float) -> bool:
        """Returns whether the transaction is immune to checks at the time `now_s`."""
        return now_s < self.end_s - _MOMENT_S


def find_immunity(encoded_properties: bytes, now_s: float) -> Immunity | None:
    """Returns the immunity of a half message that arrives at `now_s`, or None if its properties set no valid immunity."""
    text = props.find(encoded_properties, _NAME)
    try:
        seconds = int(text) if text is not None else -1
    except ValueError:
        return None
    return Immunity(now_s, seconds) if seconds >= 0 else None


def with_check_interval(interval_s: float, encoded_properties: bytes) -> bytes:
    """Returns changed properties that make this broker scan the half message at each check interval, as Apache's broker does."""
    return props.put(encoded_properties, _NAME, str(max(1, int(interval_s))))


def scans_until_check(immunity: Immunity | None, first_scan_s: float, interval_s: float) -> int:
    """Returns the number of scans from `first_scan_s` to the first check-back, or 0 if the message is not immune at that time."""
    if immunity is None or not immunity.covers(first_scan_s):
        return 0
    return math.ceil((immunity.end_s - _MOMENT_S - first_scan_s) / interval_s)
