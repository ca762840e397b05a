"""Safety: what must hold at each step of a world, judged by the frames and the database commits as they come."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from lab.simulation.judges.commit_watch import CommitWatch
from lab.simulation.judges.frames.frame_telling import FrameTelling
from lab.simulation.judges.frames.frame_watch import WireWatch
from lab.simulation.judges.violation import Violation
from rocketmq_commitlog.commit_log import Damage, LogRecord


class SafetyJudge:
    """Observes a world; each method returns the promises that this step broke."""

    def __init__(self, telling: FrameTelling | None = None) -> None:
        """Observes a world from its beginning. `telling` is told what the frames carry."""
        self._commits = CommitWatch()
        self._frames = WireWatch(self._commits.is_handled, self._commits.transactions.get, telling)

    def observe(self, at_ns: int, sender: str, receiver: str, frame: bytes) -> list[Violation]:
        """Looks at a whole frame, with its length, that `sender` writes to `receiver`: "HOST:PORT" of a connection's ends."""
        return self._frames.observe(at_ns, sender, receiver, frame)

    def observe_commit(self, database: str, connection: sqlite3.Connection) -> list[Violation]:
        """Looks at a service's database after its database commit: `orders`, `credits` or `stock`."""
        return self._commits.observe_commit(database, connection)

    def after_recovery(self, broker: str, records: Iterable[LogRecord | Damage]) -> list[Violation]:
        """Looks at the commit log of a broker that began again. `broker` is its name as the sender of frames."""
        return self._frames.after_recovery(broker, records)

    def after_power_failure(self, database: str) -> None:
        """Looks at the whole database the next time."""
        self._commits.forget(database)
