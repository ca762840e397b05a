"""After how many worlds each planted bug was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class FoundBug:
    """What playing one world after the other, from seed 1, showed about a planted bug."""

    tried: int
    """How many worlds were played at most."""
    seeds: int | None
    """How many worlds were played until one broke a promise; None if none did."""
    remark: str
    """The promise that was broken first, or why none was."""


FOUND: Final[Mapping[str, FoundBug]] = {
    "second-commit-accepted": FoundBug(29, None, "a judge must see that a message lies in its queue once, in every world"),
    "op-message-first": FoundBug(29, None, "more worlds are needed"),
    "taken-back-and-forgotten": FoundBug(6, 6, "An acknowledged order gets its credit once."),
    "closed-before-stored": FoundBug(28, None, "more worlds are needed"),
    "pull-offset-committed": FoundBug(6, 6, "An acknowledged order gets its credit once."),
    "rest-passed-over": FoundBug(13, 13, "An acknowledged order gets its credit once."),
    "answered-before-flush": FoundBug(29, None, "more worlds are needed"),
    "flush-counts-later-writes": FoundBug(28, None, "more worlds are needed"),
    "queue-cut-one-short": FoundBug(29, None, "more worlds are needed"),
    "segment-name-unsynced": FoundBug(28, None, "more worlds are needed"),
    "half-offset-one-too-far": FoundBug(29, None, "more worlds are needed"),
    "no-evidence-sought": FoundBug(28, None, "more worlds are needed"),
    "offset-after-newest-handled": FoundBug(29, None, "more worlds are needed"),
    "queue-left-at-next-pull": FoundBug(28, None, "more worlds are needed"),
    "one-id-for-all-attempts": FoundBug(29, None, "more worlds are needed"),
    "silence-counts-as-stored": FoundBug(28, None, "more worlds are needed"),
    "queues-left-over": FoundBug(29, None, "more worlds are needed"),
    "greets-only-once": FoundBug(1, 1, "An acknowledged order gets its credit once."),
    "answers-from-memory": FoundBug(7, 7, "An acknowledged order gets its credit once."),
    "rollback-without-marker": FoundBug(28, None, "more worlds are needed"),
    "order-and-row-apart": FoundBug(4, 4, "An acknowledged order gets its credit once."),
    "key-not-unique": FoundBug(28, None, "more worlds are needed"),
    "cancelled-before-told": FoundBug(6, 6, "An acknowledged order gets its credit once."),
    "expiry-not-written": FoundBug(2, 2, "In the end no transaction waits for its decision, and no message for its consumer."),
    "witness-not-checked": FoundBug(7, 7, "An acknowledged order gets its credit once."),
    "lost-answer-rolls-back": FoundBug(4, 4, "An acknowledged order gets its credit once."),
    "duplicates-added": FoundBug(1, 1, "A balance is the sum of the customer's entries."),
    "taken-task-counts-as-done": FoundBug(3, 3, "An acknowledged order gets its credit once."),
    "outcomes-in-key-order": FoundBug(29, None, "no fault lets a database refuse one order by a rule"),
    "long-hold-counts-as-done": FoundBug(28, None, "more worlds are needed"),
    "credit-after-reversal-skipped": FoundBug(7, 7, "An acknowledged order gets its credit once."),
    "balance-read-before": FoundBug(2, 2, "A balance is the sum of the customer's entries."),
    "recovered-log-unsynced": FoundBug(29, None, "more worlds are needed"),
    "failed-sync-repeated": FoundBug(28, None, "more worlds are needed"),
    "slow-flush-counts-as-stored": FoundBug(
        29, None, "disks of a world are slow by 2 s at most, and the broker's patience with a flush is 5 s"
    ),
    "first-id-kept": FoundBug(28, None, "more worlds are needed"),
    "offsets-noted-before-flush": FoundBug(28, None, "more worlds are needed"),
    "delay-offset-before-flush": FoundBug(28, None, "no fault makes a message wait for its redelivery"),
    "refusal-told-first": FoundBug(28, None, "no fault lets a database refuse one order by a rule"),
}
"""By the bug's name."""
