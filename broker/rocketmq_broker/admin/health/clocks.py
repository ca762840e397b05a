"""Compares a broker's clock with this machine's.

RocketMQ has no request for a broker's time. The broker's statistics contain its start time and its uptime in whole seconds.
"""

import re
from collections.abc import Mapping
from typing import Final

from rocketmq_broker.admin.health.finding import HealthFinding, fine, wrong
from rocketmq_broker.admin.output.durations import duration_text
from rocketmq_broker.admin.output.numbers import is_number

_MAX_MS: Final = 5_000
"""The maximum healthy difference in milliseconds. Brokers check back 6 s after the born time that the producer set."""
_RUNTIME: Final = re.compile(r"\[ ([\d,]+) days, (\d+) hours, (\d+) minutes, (\d+) seconds \]")
_RESOLUTION_MS: Final = 1_000


def broker_time_ms(figures: Mapping[str, str]) -> int | None:
    """Returns the broker's time, which may be up to a second too early; None if its statistics do not contain it."""
    booted, runtime = figures.get("bootTimestamp", ""), _RUNTIME.fullmatch(figures.get("runtime", ""))
    if runtime is None or not is_number(booted):
        return None
    days, hours, minutes, seconds = (int(part.replace(",", "")) for part in runtime.groups())
    return int(booted) + (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000


def clock_difference_ms(figures: Mapping[str, str], asked_ms: int, answered_ms: int) -> int | None:
    """Returns the smallest possible difference between the broker's clock and this machine's, in milliseconds.

    The difference is positive if the broker's clock is ahead, negative if it is behind, and 0 if the clocks may be equal.

    `asked_ms` and `answered_ms` are this machine's times of the request and the response. Returns None if the statistics do
    not contain a time.
    """
    broker_ms = broker_time_ms(figures)
    if broker_ms is None:
        return None
    low, high = broker_ms - answered_ms, broker_ms + _RESOLUTION_MS - asked_ms
    if low <= 0 <= high:
        return 0
    return low if low > 0 else high


def clock(subject: str, figures: Mapping[str, str], asked_ms: int, answered_ms: int) -> HealthFinding:
    """Returns the finding about the broker's clock."""
    difference = clock_difference_ms(figures, asked_ms, answered_ms)
    if difference is None:
        return fine(subject, "It does not report its time.")
    if abs(difference) <= _MAX_MS:
        return fine(subject, "Its clock agrees with this machine's.", clockDifferenceMs=difference)
    direction = "ahead of" if difference > 0 else "behind"
    what = f"Its clock is {duration_text(abs(difference))} {direction} this machine's."
    what_to_do = (
        "Synchronize both machines with the same time server: check-backs, delays and retention depend on the broker's clock."
    )
    return wrong(subject, what, what_to_do, clockDifferenceMs=difference)
