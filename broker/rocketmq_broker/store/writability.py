"""The state in which messages are stored, or the reason why not; and the refusals that follow from the disk's used space.

    0 ------------------ 90 % ------------------- 98 % ---- 100 %
    everything is stored | no new messages are    | nothing is
                         | stored, only what ends | stored
                         | what was accepted      |

The room between 90 and 98 % is kept for the end of transactions, and for the delivery of delayed messages. A refusal would
keep pending transactions from ending just when a person is busy with the disk. 90 % is diskSpaceWarningLevelRatio.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from rocketmq_broker.store.errors import StoreUnwritable

RESERVE_SHARE: Final = 0.8
"""The part of the room above diskSpaceWarningLevelRatio for what was accepted; the rest is for tables and checkpoints."""
HYSTERESIS: Final = 0.01
"""The fall below a level that is needed to leave that level."""


class Admission(IntEnum):
    """The messages that are stored."""

    EVERYTHING = 0
    ACCEPTED_ONLY = 1
    """The ends of transactions, and delayed messages that are due; no new messages."""
    NOTHING = 2


def admission(used_ratio: float, warning_ratio: float, before: Admission) -> Admission:
    """Returns the admission at that use of the disk, after the admission `before`."""
    last_ratio = warning_ratio + (1 - warning_ratio) * RESERVE_SHARE
    for found, ratio in ((Admission.NOTHING, last_ratio), (Admission.ACCEPTED_ONLY, warning_ratio)):
        if used_ratio > (ratio - HYSTERESIS if before >= found else ratio):
            return found
    return Admission.EVERYTHING


class Writability:
    """One state with several causes: a disk that is full, flushes that fall behind, a store that cannot continue."""

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
        """The reason why new messages are refused, or None."""
        self.is_everything_refused = False
        """Whether the ends of transactions are refused as well."""
        self.is_broken = False
        """Whether nothing is stored until the store is opened again."""
        self.is_given_up = False
        """Whether the files stay unchanged too: another broker may be using them."""
        self._admission = Admission.EVERYTHING
        self._full: str | None = None
        self._busy: str | None = None
        self._failing: str | None = None
        self.flush_failures = 0
        """The number of flushes of the commit log that the disk refused."""

    def note_disk(self, used_ratio: float, warning_ratio: float) -> None:
        """Notes the used part of the disk, 0 to 1."""
        self._admission = admission(used_ratio, warning_ratio, self._admission)
        is_full = self._admission is not Admission.EVERYTHING
        # Four significant digits: a rounded "90% full" would not be above 90 %.
        self._full = f"the disk is {used_ratio * 100:.4g}% full; {_ADMITTED[self._admission]}" if is_full else None
        self._settle()

    def note_busy(self, reason: str | None) -> None:
        """Notes that too much waits for the disk; None: no longer."""
        self._busy = reason
        self._settle()

    def note_flush(self, failure: str | None) -> None:
        """Notes why acknowledged data could not be brought to the disk; None once it was."""
        self._failing = failure
        self._settle()

    @property
    def is_failing(self) -> bool:
        """Returns whether the disk refused acknowledged data."""
        return self._failing is not None

    @property
    def is_busy(self) -> bool:
        """Returns whether too much waits for the disk."""
        return self._busy is not None

    def break_for_good(self, reason: str) -> None:
        """Stops storing for good."""
        self.refusal = reason
        self.is_broken = self.is_everything_refused = True

    def give_up(self, reason: str) -> None:
        """Stops storing and changing files for good."""
        self.is_given_up = True
        self.break_for_good(reason)

    def refuse_if_given_up(self) -> None:
        """Raises StoreUnwritable after `give_up`."""
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
