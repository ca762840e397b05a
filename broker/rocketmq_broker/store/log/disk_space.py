"""The disk's used space, and the refusals that follow from it.

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
