"""Reconciling over and over: what is new every few seconds, in one Spark session."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from pipelines.errors import COULD_NOT_TELL

LEAST_EVERY_S: Final = 1.0


def watch(turn: Callable[[], str], say: Callable[[str], None], stopping: threading.Event, every_s: float) -> int:
    """Takes turns until `stopping` is set, `every_s` from the end of one to the begin of the next; answers how many failed.

    A database or a disk that is away costs its turns and nothing else: the next turn reads what the last good one left.
    """
    failed = 0
    while not stopping.is_set():
        try:
            say(turn())
        except COULD_NOT_TELL as error:
            failed += 1
            say(f"could not tell: {error}")
        stopping.wait(max(every_s, LEAST_EVERY_S))
    return failed
