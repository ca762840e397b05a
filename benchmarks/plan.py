"""What is measured, in which order, and about how long it takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.brokers import Side

WARM_UP_S = 10
"""The load driver's, before its seconds begin."""
_START_AND_STOP_S = {Side.OURS: 2, Side.APACHE: 7}
_DRIVER_S = 4
_CONSUMED_PER_S = 6_000
_FILLED_PER_S = 20_000


@dataclass(frozen=True, slots=True)
class Load:
    """One row of the table: what is asked of both brokers."""

    flush: str
    header: str
    threads: int | None
    """How many threads send; None: eight send and a push consumer receives."""

    @property
    def name(self) -> str:
        """How people call it."""
        return "consume" if self.threads is None else f"{self.threads} thread{'s' if self.threads > 1 else ''}"


@dataclass(frozen=True, slots=True)
class Run:
    """One load on one broker."""

    round: int
    load: Load
    side: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All of it."""

    loads: Sequence[Load]
    rounds: int
    seconds: int
    body_size: int
    consumed: int
    """Messages of a consume run."""
    recovered: int
    """Messages in the store that is recovered; 0: not measured."""

    def runs(self) -> list[Run]:
        """Both brokers in turn for each load, the other one first in every second round."""
        sides = list(Side)
        return [
            Run(number, load, side)
            for number in range(self.rounds)
            for load in self.loads
            for side in (sides if number % 2 == 0 else sides[::-1])
        ]

    def run_s(self, run: Run) -> float:
        """About how long a run takes."""
        load_s = self.consumed / _CONSUMED_PER_S + 4 if run.load.threads is None else WARM_UP_S + self.seconds
        return load_s + _DRIVER_S + _START_AND_STOP_S[run.side]

    def recovery_s(self, side: Side) -> float:
        """About how long it takes to measure a recovery."""
        return 2 * _START_AND_STOP_S[side] + self.recovered / _FILLED_PER_S if self.recovered else 0

    def total_s(self) -> float:
        """About how long all of it takes."""
        return sum(map(self.run_s, self.runs())) + sum(map(self.recovery_s, Side))


def loads(flushes: Sequence[str], headers: Sequence[str], threads: Sequence[int], *, with_consumer: bool) -> list[Load]:
    """Every combination."""
    senders: list[int | None] = [*threads, None] if with_consumer else [*threads]
    return [Load(flush, header, number) for flush in flushes for header in headers for number in senders]
