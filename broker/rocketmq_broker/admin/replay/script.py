"""A scripted history: the half messages, decisions and check-back responses of producers, with their times.

Both brokers follow the same script.
"""

from dataclasses import dataclass, field
from typing import Final

from rocketmq_broker.transaction.checking.check_policy import CheckPolicy

COMMIT: Final = "COMMIT"
ROLLBACK: Final = "ROLLBACK"
UNKNOWN: Final = "UNKNOWN"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedTransaction:
    """A transaction: its half message, the decision of its local transaction, and the responses to check-backs."""

    name: str
    sent_ms: int
    """The time of the half message, in milliseconds since the broker's start."""
    decision: str | None = None
    """COMMIT or ROLLBACK; None if no decision arrives."""
    decided_ms: int = 0
    """The time at which the decision arrives."""
    answers: tuple[str, ...] = (UNKNOWN,)
    """The answers to the check-backs. The last one is repeated."""
    immunity_s: int | None = None
    """CHECK_IMMUNITY_TIME_IN_SECONDS of the message."""

    def answer(self, number: int) -> str:
        """Returns the response to check-back `number`, which starts at 1."""
        return self.answers[min(number, len(self.answers)) - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckHistory:
    """The transactions of a history, and the settings of the broker."""

    title: str
    summary: str
    transactions: tuple[ScriptedTransaction, ...]
    until_ms: int
    """The time at which the history ends, in milliseconds since the broker's start."""
    policy: CheckPolicy = field(default_factory=CheckPolicy)
