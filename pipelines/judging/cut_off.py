"""The cut-off of a reconciliation, which avoids false reports about a running system.

Rows are only added to the tables, and the tables are read one after the other, range by range, at different moments. Therefore:

- `as_of` is taken before anything is read. Rows younger than `as_of - grace` are not reported as incomplete.
- An older order has had the whole grace period to be credited, and every table is read after `as_of`: if the credit had been
  written in time, it would have been read. The credit is therefore really missing, whichever table is read first.
- An older credit was written after its order was committed, so the order existed before any table was read. A younger credit may
  belong to an order that was placed after the orders were read.
- Rows that exist can be judged at any age: two credits for one order, or a wrong amount, do not go away.

Without a commit log the grace period must be longer than the longest healthy time from order to credit. The longest time occurs
after a lost COMMIT, which a check-back resolves after transactionTimeOut (6 s) and up to one transactionCheckInterval (60 s), if
the order service is available. The grace period must also cover the difference between the clocks of the two services and of this
machine.

A commit log provides more information. A half message without a decision, a message that the consumer group has not acknowledged,
and a message that waits for its redelivery count as on their way at any age, because a database may be unavailable for days. Such
messages are reported only after `overdue_seconds`.

A time counts as young from the grace period before `as_of` until AHEAD_SECONDS after `as_of`. A later time does not count as
young. It is reported only beyond LEAP_SECONDS, because a clock that was ahead for a while leaves such times, and a run on the
next day would not report them. A time of MAX_AGE_SECONDS ago is reported too, because seconds were probably written instead of
milliseconds.
"""

from dataclasses import dataclass

GRACE_SECONDS = 120
OVERDUE_SECONDS = 24 * 60 * 60
AHEAD_SECONDS = 30 * 60
"""The time in seconds after `as_of` up to which a row still counts as young, because rows are written during the run."""
LEAP_SECONDS = 25 * 60 * 60
"""The time in seconds after `as_of` up to which a wrong clock, with a wrong day or time zone, explains a row's time."""
MAX_AGE_SECONDS = 30 * 365 * 24 * 60 * 60
"""The maximum plausible age of a row in seconds: thirty years. The software has not existed for that long."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """The reference time of a reconciliation, and the periods in which incomplete orders are not reported.

    `as_of_ms` is in milliseconds since the epoch. Orders younger than `grace_seconds` are not reported as incomplete.
    Orders whose message is on its way are reported only after `overdue_seconds`.
    """

    as_of_ms: int
    grace_seconds: int = GRACE_SECONDS
    overdue_seconds: int = OVERDUE_SECONDS

    @property
    def judged_until_ms(self) -> int:
        """The latest creation time, in milliseconds since the epoch, at which a row is judged. Later rows count as in flight."""
        return self.as_of_ms - self.grace_seconds * 1000

    @property
    def overdue_until_ms(self) -> int:
        """The latest start, in milliseconds since the epoch, at which an order on its way counts as overdue."""
        return self.as_of_ms - self.overdue_seconds * 1000

    @property
    def future_from_ms(self) -> int:
        """The time, in milliseconds since the epoch, from which a row is too far in the future to count as young."""
        return self.as_of_ms + max(self.grace_seconds, AHEAD_SECONDS) * 1000

    @property
    def impossible_from_ms(self) -> int:
        """The time, in milliseconds since the epoch, from which even a wrong clock does not explain a row's time."""
        return self.as_of_ms + max(self.grace_seconds, LEAP_SECONDS) * 1000

    @property
    def impossible_until_ms(self) -> int:
        """The time, in milliseconds since the epoch, up to which a row's time is implausibly old."""
        return self.as_of_ms - MAX_AGE_SECONDS * 1000
