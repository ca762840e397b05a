"""Compares a broker's clock with this machine's.

No request asks a broker for its time. But its figures hold the date of its start and its running time, in whole seconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from rocketmq_broker.admin.health.finding import HealthFinding, fine, wrong
from rocketmq_broker.admin.telling.durations import duration_text
from rocketmq_broker.admin.telling.numbers import is_number

_MAX_MS: Final = 5_000
"""RocketMQ's producers write the time of birth, and its brokers check back 6 s after it."""
_RUNTIME: Final = re.compile(r"\[ ([\d,]+) days, (\d+) hours, (\d+) minutes, (\d+) seconds \]")
_RESOLUTION_MS: Final = 1_000


def broker_time_ms(figures: Mapping[str, str]) -> int | None:
    """Returns the broker's time, rounded down by a second at most; None if its figures lack it."""
    booted, runtime = figures.get("bootTimestamp", ""), _RUNTIME.fullmatch(figures.get("runtime", ""))
    if runtime is None or not is_number(booted):
        return None
    days, hours, minutes, seconds = (int(part.replace(",", "")) for part in runtime.groups())
    return int(booted) + (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000


def clock_difference_ms(figures: Mapping[str, str], asked_ms: int, answered_ms: int) -> int | None:
    """Returns the least amount by which the broker's clock is ahead, negative if behind; 0 if no difference is certain.

    `asked_ms` and `answered_ms` are this machine's times before and after the broker's answer. Returns None if its figures lack a
    time.
    """
    broker_ms = broker_time_ms(figures)
    if broker_ms is None:
        return None
    least, most = broker_ms - answered_ms, broker_ms + _RESOLUTION_MS - asked_ms
    if least <= 0 <= most:
        return 0
    return least if least > 0 else most


def clock(subject: str, figures: Mapping[str, str], asked_ms: int, answered_ms: int) -> HealthFinding:
    """Returns the finding about the broker's clock."""
    difference = clock_difference_ms(figures, asked_ms, answered_ms)
    if difference is None:
        return fine(subject, "It does not say what its clock shows.")
    if abs(difference) <= _MAX_MS:
        return fine(subject, "Its clock and this machine's agree.", clockDifferenceMs=difference)
    direction = "ahead of" if difference > 0 else "behind"
    what = f"Its clock is {duration_text(abs(difference))} {direction} this machine's."
    what_to_do = "Let both machines follow one time server: check-backs, delays and retention go by the broker's clock."
    return wrong(subject, what, what_to_do, clockDifferenceMs=difference)
