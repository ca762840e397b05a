"""Counters of transactions since the broker's start, for metrics and operators."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from rocketmq_broker.transaction.decision import Refusal


@dataclass(slots=True)
class TransactionCounts:
    """Plain counters; they only grow."""

    unknown_answers: int = 0
    checks_sent: int = 0
    checks_without_producer: int = 0
    checks_held_back: int = 0
    """Checks put off: every producer of the group owed that answer or too many others, or did not read."""
    checks_given_back: int = 0
    """Checks of producers that left without an answer. They count against no transaction."""
    discards: int = 0
    skips: int = 0
    moves: int = 0
    resumes: int = 0
    commits_by_hand: int = 0
    rollbacks_by_hand: int = 0
    bad_records: int = 0
    take_backs: int = 0
    """Batches that did not reach the disk and whose transitions were undone."""
    refusals: Counter[Refusal] = field(default_factory=Counter)
