"""Tracks whether the store accepts messages, and the reason if it does not. Acceptance depends on the used disk space:

    0 ------------------ 90 % ------------------- 98 % ---- 100 %
    all messages         | only ends of           | no messages
                         | transactions and due   |
                         | delayed messages       |

The space between 90 and 98 % lets pending transactions end and delayed messages be delivered while an operator frees disk
space. The limit of 90 % is diskSpaceWarningLevelRatio.
"""

from enum import IntEnum
from typing import Final

from rocketmq_broker.store.errors import StoreUnwritable

RESERVE_SHARE: Final = 0.8
"""The share of the disk space above diskSpaceWarningLevelRatio that is reserved for messages that were already accepted.

The rest remains free for tables and checkpoints.
"""
HYSTERESIS: Final = 0.01
"""The amount by which the used ratio must fall below a limit before the store accepts more messages again."""


class Admission(IntEnum):
    """The kinds of messages that the store accepts at a used ratio of the disk."""

    EVERYTHING = 0
    ACCEPTED_ONLY = 1
    """Only the ends of transactions, and delayed messages that are due."""
    NOTHING = 2


def admission(used_ratio: float, warning_ratio: float, before: Admission) -> Admission:
    """Returns which messages are accepted at a used ratio of the disk. `before` is the previous result, for the hysteresis."""
    last_ratio = warning_ratio + (1 - warning_ratio) * RESERVE_SHARE
    for found, ratio in ((Admission.NOTHING, last_ratio), (Admission.ACCEPTED_ONLY, warning_ratio)):
        if used_ratio > (ratio - HYSTERESIS if before >= found else ratio):
            return found
    return Admission.EVERYTHING


class Writability:
    """Tracks whether the store accepts messages. Refuses them if the disk is full, flushes are late, or the store is broken."""

    __slots__ = (
        "_admission",
        "_busy",
        "_failing",
        "_full",
        "flush_failures",
        "is_broken",
        "is_everything_refused",
        "is_given_up",
        "refusal",
    )

    def __init__(self) -> None:
        self.refusal: str | None = None
        """The reason why new messages are refused, or None if there is none."""
        self.is_everything_refused = False
        """Whether the ends of transactions are refused as well."""
        self.is_broken = False
        """Whether all writes are refused until the store is opened again, because it is broken."""
        self.is_given_up = False
        """Whether the files must stay unchanged, because another broker may be using them. All writes are refused as well."""
        self._admission = Admission.EVERYTHING
        self._full: str | None = None
        self._busy: str | None = None
        self._failing: str | None = None
        self.flush_failures = 0
        """The number of failed flushes of the commit log."""

    def note_disk(self, used_ratio: float, warning_ratio: float) -> None:
        """Updates the state after a change of the disk's used ratio, 0 to 1. Above `warning_ratio`, new messages are refused."""
        self._admission = admission(used_ratio, warning_ratio, self._admission)
        is_full = self._admission is not Admission.EVERYTHING
        # With four significant digits the text never shows 90% for a ratio above 90 %.
        self._full = f"the disk is {used_ratio * 100:.4g}% full; {_ADMITTED[self._admission]}" if is_full else None
        self._settle()

    def note_busy(self, reason: str | None) -> None:
        """Refuses messages because flushes fall behind, or accepts them again if `reason` is None."""
        self._busy = reason
        self._settle()

    def note_flush(self, failure: str | None) -> None:
        """Refuses messages because acknowledged data could not be flushed, or accepts them again if `failure` is None."""
        self._failing = failure
        self._settle()

    @property
    def is_failing(self) -> bool:
        """Returns whether acknowledged data could not be flushed."""
        return self._failing is not None

    @property
    def is_busy(self) -> bool:
        """Returns whether flushes have fallen behind."""
        return self._busy is not None

    def break_for_good(self, reason: str) -> None:
        """Refuses all writes until the store is opened again. `reason` is the error text."""
        self.refusal = reason
        self.is_broken = self.is_everything_refused = True

    def give_up(self, reason: str) -> None:
        """Refuses all writes and all changes of files until the store is opened again. `reason` is the error text."""
        self.is_given_up = True
        self.break_for_good(reason)

    def refuse_if_given_up(self) -> None:
        """Raises StoreUnwritable if `give_up` was called."""
        if self.is_given_up:
            raise StoreUnwritable(self.refusal or "")

    def _settle(self) -> None:
        if self.is_broken:
            return
        self.refusal = self._failing or self._busy or self._full
        is_waiting = self._failing is not None or self._busy is not None
        self.is_everything_refused = is_waiting or self._admission is Admission.NOTHING


_ADMITTED = {
    Admission.EVERYTHING: "",
    Admission.ACCEPTED_ONLY: "new messages are refused until there is space (diskSpaceWarningLevelRatio)",
    Admission.NOTHING: "nothing is stored until there is space",
}
