"""Checks safety guarantees at each frame and each database commit of a simulation."""

import sqlite3
from collections.abc import Iterable

from lab.simulation.judges.commit_watch import CommitWatch
from lab.simulation.judges.violation import Violation
from lab.simulation.judges.wire_watch import WireWatch
from rocketmq_broker.testing.exploring.frame_watch import FrameJournal
from rocketmq_commitlog.commit_log import Damage, LogRecord


class SafetyJudge:
    """Checks a simulation step by step. Each method returns the violations of one step."""

    def __init__(self, journal: FrameJournal | None = None) -> None:
        """Creates the judge of a new simulation. `journal` records the frames."""
        self._commits = CommitWatch()
        self._frames = WireWatch(self._commits.is_handled, self._commits.transactions.get, journal)

    def observe(self, sender: str, receiver: str, frame: bytes) -> list[Violation]:
        """Checks a whole frame, including its length. `sender` and `receiver` are "HOST:PORT"."""
        return self._frames.observe(sender, receiver, frame)

    def observe_commit(self, database: str, connection: sqlite3.Connection) -> list[Violation]:
        """Checks the database `orders`, `credits` or `stock` after a database commit."""
        return self._commits.observe_commit(database, connection)

    def after_recovery(self, broker: str, records: Iterable[LogRecord | Damage]) -> list[Violation]:
        """Checks the commit log of a restarted broker. `broker` is the name with which the broker sends frames."""
        return self._frames.after_recovery(broker, records)
