"""The one moment of a reconciliation's judgement, which avoids false reports about a running system.

The tables are only ever added to, and are read one after the other, range by range, at different moments. Therefore:

- `as_of` is taken before anything is read, and whatever is younger than `as_of - grace` may not be judged by what it lacks.
- An order older than that has had the whole grace period to reach its credit, and every table is read after `as_of`: if the
  credit had come in time, it would have been read. So its absence is real, whichever table is read first.
- A credit older than that was written after its order was committed, so its order was there before any table was read. A
  younger credit may belong to an order that was read too early to be seen.
- What is there can be judged at any age: two credits for one order, or another amount, will not mend themselves.

Without a commit log the grace period must be longer than the longest healthy way from order to credit. The longest one is a lost
COMMIT, which the broker's check-back heals after transactionTimeOut (6 s) and up to one transactionCheckInterval (60 s), if the
order service can be asked. It also has to cover the difference between the clocks of the two services and of this machine.

With a commit log the judge knows more. A half message without decision, a message that the consumer group has not acknowledged
and a message that waits for its redelivery are on their way, however old they are: a database may be away for days. Only
`overdue_seconds` ends that patience.

A time is young between the grace period before `as_of` and AHEAD_SECONDS after it. A later time excuses nothing. It accuses only
beyond LEAP_SECONDS: a clock that leapt ahead for a while leaves such times, and a run on the next day would find nothing wrong
with them. A time of MAX_AGE_SECONDS ago is not one of these services: seconds that were taken for milliseconds lie there.
"""

from __future__ import annotations

from dataclasses import dataclass

GRACE_SECONDS = 120
OVERDUE_SECONDS = 24 * 60 * 60
AHEAD_SECONDS = 30 * 60
"""The greatest distance of a time ahead of `as_of` that still counts as young: rows are written while others are read."""
LEAP_SECONDS = 25 * 60 * 60
"""The greatest distance of a time ahead of `as_of` that a leap of the clock explains: a wrong day, or a wrong time zone."""
MAX_AGE_SECONDS = 30 * 365 * 24 * 60 * 60
"""Thirty years: the software is younger."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """`as_of_ms` is milliseconds since the epoch."""

    as_of_ms: int
    grace_seconds: int = GRACE_SECONDS
    overdue_seconds: int = OVERDUE_SECONDS

    @property
    def judged_until_ms(self) -> int:
        """The upper limit of creation times that are judged; later ones are still in flight."""
        return self.as_of_ms - self.grace_seconds * 1000

    @property
    def overdue_until_ms(self) -> int:
        """The upper limit of start times after which waiting counts as overdue."""
        return self.as_of_ms - self.overdue_seconds * 1000

    @property
    def future_from_ms(self) -> int:
        """The lower limit of times that excuse nothing, because they lie too far ahead."""
        return self.as_of_ms + max(self.grace_seconds, AHEAD_SECONDS) * 1000

    @property
    def impossible_from_ms(self) -> int:
        """The lower limit of times that no row can have, even after a leap of the clock."""
        return self.as_of_ms + max(self.grace_seconds, LEAP_SECONDS) * 1000

    @property
    def impossible_until_ms(self) -> int:
        """The upper limit of times that no row can have, because they lie too far back."""
        return self.as_of_ms - MAX_AGE_SECONDS * 1000
