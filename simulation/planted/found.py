"""After how many worlds each planted bug was found."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from simulation.planted.kept import KeptHunt


@dataclass(frozen=True, slots=True)
class FoundBug:
    """What playing one world after the other, from seed 1, showed about a planted bug."""

    tried: int
    """How many worlds were played at most."""
    seeds: int | None
    """How many worlds were played until one broke a promise; None if none did."""
    remark: str
    """The promise that was broken first, or why none was."""
    cpu_s: float | None = None
    """The seconds of a processor that these worlds took; None if nobody measured."""
    events: int | None = None
    """What is left of the plan of the world that found it, once shrunk; None if it was not shrunk."""


FOUND: Final[Mapping[str, FoundBug]] = {
    "second-commit-accepted": FoundBug(6, 6, "A committed message lies in its queue once."),
    "op-message-first": FoundBug(17, 17, "An acknowledged order gets its credit once."),
    "taken-back-and-forgotten": FoundBug(43, 43, "The reconciliation finds nothing wrong in the books."),
    "closed-before-stored": FoundBug(16, 16, "An acknowledged order gets its credit once."),
    "pull-offset-committed": FoundBug(21, 21, "A consumer's offset never passes a message that the consumer did not handle."),
    "rest-passed-over": FoundBug(16, 16, "An acknowledged order gets its credit once."),
    "answered-before-flush": FoundBug(16, 16, "A message that the broker acknowledged is there after a crash."),
    "flush-counts-later-writes": FoundBug(127, 127, "A message that the broker acknowledged is there after a crash."),
    "queue-cut-one-short": FoundBug(41, 41, "An acknowledged order gets its credit once."),
    "segment-name-unsynced": FoundBug(69, 69, "A message that the broker acknowledged is there after a crash."),
    "half-offset-one-too-far": FoundBug(2, 2, "An acknowledged order gets its credit once."),
    "no-evidence-sought": FoundBug(241, None, "more worlds are needed"),
    "offset-after-newest-handled": FoundBug(
        12, 12, "A consumer's offset never passes a message that the consumer did not handle."
    ),
    "queue-left-at-next-pull": FoundBug(9, 9, "An acknowledged order gets its credit once."),
    "one-id-for-all-attempts": FoundBug(6, 6, "A committed message lies in its queue once."),
    "silence-counts-as-stored": FoundBug(16, 16, "An acknowledged order gets its credit once."),
    "queues-left-over": FoundBug(1, 1, "In the end no transaction waits for its decision, and no message for its consumer."),
    "greets-only-once": FoundBug(2, 2, "In the end no transaction waits for its decision, and no message for its consumer."),
    "answers-from-memory": FoundBug(2, 2, "A transaction has one outcome."),
    "rollback-without-marker": FoundBug(45, 45, "A transaction has one outcome."),
    "order-and-row-apart": FoundBug(14, 14, "In the end no transaction waits for its decision, and no message for its consumer."),
    "key-not-unique": FoundBug(2, 2, "An answer fits what the customer asked and was told before."),
    "cancelled-before-told": FoundBug(7, 7, "An acknowledged order gets its credit once."),
    "expiry-not-written": FoundBug(2, 2, "A transaction has one outcome."),
    "witness-not-checked": FoundBug(241, None, "more worlds are needed"),
    "lost-answer-rolls-back": FoundBug(14, 14, "A transaction has one outcome."),
    "duplicates-added": FoundBug(3, 3, "A balance is the sum of the customer's entries."),
    "taken-task-counts-as-done": FoundBug(10, 10, "A consumer's offset never passes a message that the consumer did not handle."),
    "outcomes-in-key-order": FoundBug(189, 189, "A consumer's offset never passes a message that the consumer did not handle."),
    "long-hold-counts-as-done": FoundBug(43, 43, "A consumer's offset never passes a message that the consumer did not handle."),
    "credit-after-reversal-skipped": FoundBug(
        2, 2, "A consumer's offset never passes a message that the consumer did not handle."
    ),
    "balance-read-before": FoundBug(2, 2, "A balance is the sum of the customer's entries."),
    "recovered-log-unsynced": FoundBug(241, None, "more worlds are needed"),
    "failed-sync-repeated": FoundBug(16, 16, "The reconciliation finds nothing wrong in the books."),
    "slow-flush-counts-as-stored": FoundBug(
        241, None, "more worlds are needed: a sync of more than 5 s and a power failure before its end seldom meet"
    ),
    "first-id-kept": FoundBug(5, 5, "A consumer sees a message of a transaction only after its COMMIT."),
    "offsets-noted-before-flush": FoundBug(241, None, "more worlds are needed"),
    "delay-offset-before-flush": FoundBug(
        241, None, "more worlds are needed: the power must fail within the sync of a redelivery that is due"
    ),
    "refusal-told-first": FoundBug(48, 48, "An order that the credit service refuses is closed in its ledger first."),
}
"""By the bug's name."""


def found_in(kept: KeptHunt, names: Iterable[str]) -> dict[str, FoundBug]:
    """Returns what a hunt has shown about those of the bugs that it has found, or played in as many worlds as an earlier hunt."""
    results = {name: _found_bug(name, kept) for name in names if kept.worlds(name)}
    return {name: bug for name, bug in results.items() if bug.seeds is not None or bug.tried >= _tried_before(name)}


def _tried_before(name: str) -> int:
    earlier = FOUND.get(name)
    return 0 if earlier is None else earlier.tried


def _found_bug(name: str, kept: KeptHunt) -> FoundBug:
    worlds, found, shrunk = kept.worlds(name), kept.found(name), kept.shrunk(name)
    cpu_s = round(sum(world.cpu_s for world in worlds), 1)
    if found is None or found.promise is None:
        return FoundBug(len(worlds), None, _why_missed(name), cpu_s)
    return FoundBug(len(worlds), len(worlds), found.promise, cpu_s, None if shrunk is None else shrunk.events)


def _why_missed(name: str) -> str:
    """Returns the remark of an earlier hunt that missed the bug as well: somebody may have written it by hand."""
    earlier = FOUND.get(name)
    return earlier.remark if earlier is not None and earlier.seeds is None else "more worlds are needed"
