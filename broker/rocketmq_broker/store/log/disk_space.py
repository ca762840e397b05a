"""How full the disk is, and what is therefore refused.

     0 ------------------ 90 % ------------------- 98 % ---- 100 %
       everything is stored | no new messages are    | nothing is
                            | stored, only what ends | stored
                            | what was accepted      |

The room between 90 and 98 % is kept for transactions to end in, and for delayed messages to be delivered. Refusing them would
keep pending transactions from ending just when a person is busy with the disk. 90 % is diskSpaceWarningLevelRatio.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

RESERVE_SHARE: Final = 0.8
"""How much of the room above diskSpaceWarningLevelRatio is kept for what was accepted; the rest is for tables and checkpoints."""
HYSTERESIS: Final = 0.01
"""How far the disk must fall below a level before the level counts as left."""


class Admission(IntEnum):
    """What is stored."""

    EVERYTHING = 0
    ACCEPTED_ONLY = 1
    """What ends a transaction, and delayed messages that are due; no new messages."""
    NOTHING = 2


def admission(used_ratio: float, warning_ratio: float, before: Admission) -> Admission:
    """What is to be stored on a disk that is so full, after `before` was."""
    last_ratio = warning_ratio + (1 - warning_ratio) * RESERVE_SHARE
    for found, ratio in ((Admission.NOTHING, last_ratio), (Admission.ACCEPTED_ONLY, warning_ratio)):
        if used_ratio > (ratio - HYSTERESIS if before >= found else ratio):
            return found
    return Admission.EVERYTHING
