"""The results of the search for planted bugs: how many simulations it took to find each bug."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from lab.simulation.planted.kept import KeptHunt


@dataclass(frozen=True, slots=True)
class FoundBug:
    """The result of running simulations from seed 1 onwards with a planted bug."""

    tried: int
    """The maximum number of simulations in the search for the bug."""
    seeds: int | None
    """The number of simulations until one violated a guarantee, or None if none did."""
    remark: str
    """The guarantee that was violated first, or the reason why none was violated."""
    cpu_s: float | None = None
    """The CPU time of these simulations in seconds, or None if it was not measured."""
    events: int | None = None
    """The number of events in the shrunk plan, or None if it was not shrunk."""


FOUND: Final[Mapping[str, FoundBug]] = {
    "second-commit-accepted": FoundBug(809, None, "more worlds are needed", 291.0),
    "op-message-first": FoundBug(165, 165, "An acknowledged order gets its credit once.", 74.2, 3),
    "taken-back-and-forgotten": FoundBug(18, 18, "An acknowledged order gets its credit once.", 21.3, 4),
    "closed-before-stored": FoundBug(18, 18, "An acknowledged order gets its credit once.", 18.8, 4),
    "pull-offset-committed": FoundBug(
        30, 30, "A consumer's offset never passes a message that the consumer did not handle.", 27.9, 5
    ),
    "rest-passed-over": FoundBug(146, 146, "An acknowledged order gets its credit once.", 71.9, 5),
    "answered-before-flush": FoundBug(42, 42, "A message that the broker acknowledged is there after a crash.", 16.5, 3),
    "flush-counts-later-writes": FoundBug(523, 523, "A message that the broker acknowledged is there after a crash.", 198.0, 7),
    "queue-cut-one-short": FoundBug(
        2, 2, "In the end no transaction waits for its decision, and no message for its consumer.", 9.6, 2
    ),
    "segment-name-unsynced": FoundBug(16, 16, "A message that the broker acknowledged is there after a crash.", 15.4, 2),
    "half-offset-one-too-far": FoundBug(96, 96, "An acknowledged order gets its credit once.", 46.1, 4),
    "no-evidence-sought": FoundBug(931, None, "more worlds are needed", 331.3),
    "offset-after-newest-handled": FoundBug(
        6, 6, "A consumer's offset never passes a message that the consumer did not handle.", 1.8, 7
    ),
    "queue-left-at-next-pull": FoundBug(
        45, 45, "A consumer's offset never passes a message that the consumer did not handle.", 18.4, 3
    ),
    "one-id-for-all-attempts": FoundBug(283, 283, "A committed message lies in its queue once.", 117.1, 5),
    "silence-counts-as-stored": FoundBug(11, 11, "An acknowledged order gets its credit once.", 11.1, 4),
    "queues-left-over": FoundBug(
        1, 1, "In the end no transaction waits for its decision, and no message for its consumer.", 9.1, 2
    ),
    "greets-only-once": FoundBug(
        16, 16, "In the end no transaction waits for its decision, and no message for its consumer.", 20.8, 2
    ),
    "answers-from-memory": FoundBug(2, 2, "A transaction has one outcome.", 7.6, 3),
    "rollback-without-marker": FoundBug(605, 605, "A transaction has one outcome.", 222.6, 4),
    "order-and-row-apart": FoundBug(302, 302, "An acknowledged order gets its credit once.", 126.6, 2),
    "key-not-unique": FoundBug(3, 3, "An answer fits what the customer asked and was told before.", 12.1, 2),
    "cancelled-before-told": FoundBug(11, 11, "An acknowledged order gets its credit once.", 9.9, 3),
    "expiry-not-written": FoundBug(2, 2, "A transaction has one outcome.", 7.6, 1),
    "witness-not-checked": FoundBug(931, None, "more worlds are needed", 322.3),
    "lost-answer-rolls-back": FoundBug(277, 277, "A transaction has one outcome.", 117.2, 4),
    "duplicates-added": FoundBug(8, 8, "A balance is the sum of the customer's entries.", 27.6),
    "credit-after-reversal-skipped": FoundBug(50, None, "more worlds are needed", 37.8),
    "balance-remembered": FoundBug(5, 5, "A balance is the sum of the customer's entries.", 58.3),
    "acknowledged-unstored": FoundBug(2, 2, "A consumer's offset never passes a message that the consumer did not handle.", 39.1),
    "deleted-before-work": FoundBug(1, 1, "A message leaves an inbox only with the rows that it demands.", 1.0),
    "floor-kept": FoundBug(46, 46, "In the end no transaction waits for its decision, and no message for its consumer.", 102.0),
    "recovered-log-unsynced": FoundBug(809, None, "more worlds are needed", 298.3),
    "failed-sync-repeated": FoundBug(42, 42, "The reconciliation finds nothing wrong in the books.", 31.1),
    "slow-flush-counts-as-stored": FoundBug(
        931, None, "more worlds are needed: a sync of more than 5 s and a power failure before its end seldom meet", 329.9
    ),
    "first-id-kept": FoundBug(6, 6, "A consumer sees a message of a transaction only after its COMMIT.", 6.8),
    "offsets-noted-before-flush": FoundBug(809, None, "more worlds are needed", 292.1),
    "delay-offset-before-flush": FoundBug(
        931, None, "more worlds are needed: the power must fail within the sync of a redelivery that is due", 321.1
    ),
}
"""Maps bug names to results."""


def found_in(kept: KeptHunt, names: Iterable[str]) -> dict[str, FoundBug]:
    """Returns the results for the bugs that the search has found.

    Also returns the results for bugs that it did not find, if it ran at least as many simulations as the earlier search.
    """
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
    """Returns the remark of an earlier search that also missed the bug, otherwise a default. The remark may be handwritten."""
    earlier = FOUND.get(name)
    return earlier.remark if earlier is not None and earlier.seeds is None else "more worlds are needed"
