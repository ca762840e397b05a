"""Counters of transactions since the broker's start, for metrics and operators."""

from collections import Counter
from dataclasses import dataclass, field

from rocketmq_broker.transaction.decision import Refusal


@dataclass(slots=True)
class TransactionCounts:
    """Counters that only increase."""

    unknown_answers: int = 0
    checks_sent: int = 0
    checks_without_producer: int = 0
    checks_held_back: int = 0
    """The number of checks that were delayed because no producer of the group could take them (decision.py, GroupState)."""
    checks_given_back: int = 0
    """The number of checks that disconnected producers left unanswered. They do not count towards a transaction's limit."""
    discards: int = 0
    skips: int = 0
    moves: int = 0
    resumes: int = 0
    commits_by_hand: int = 0
    rollbacks_by_hand: int = 0
    bad_records: int = 0
    take_backs: int = 0
    """The number of batches of transitions that were undone because their records were not written to disk."""
    refusals: Counter[Refusal] = field(default_factory=Counter)
