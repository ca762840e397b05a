"""Checks the safety of a world at each frame and each database commit."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from lab.simulation.judges.commit_watch import CommitWatch
from lab.simulation.judges.frames.frame_recorder import FrameRecorder
from lab.simulation.judges.frames.frame_watch import WireWatch
from lab.simulation.judges.violation import Violation
from rocketmq_commitlog.commit_log import Damage, LogRecord


class SafetyJudge:
    """Observes a world. Each method returns the violations of its step."""

    def __init__(self, recorder: FrameRecorder | None = None) -> None:
        """Observes a world from its start. `recorder` records the frames."""
        self._commits = CommitWatch()
        self._frames = WireWatch(self._commits.is_handled, self._commits.transactions.get, recorder)

    def observe(self, at_ns: int, sender: str, receiver: str, frame: bytes) -> list[Violation]:
        """Checks a whole frame, including its length. `sender` and `receiver` are "HOST:PORT"."""
        return self._frames.observe(at_ns, sender, receiver, frame)

    def observe_commit(self, database: str, connection: sqlite3.Connection) -> list[Violation]:
        """Checks the database `orders`, `credits` or `stock` after a database commit."""
        return self._commits.observe_commit(database, connection)

    def after_recovery(self, broker: str, records: Iterable[LogRecord | Damage]) -> list[Violation]:
        """Checks the commit log of a restarted broker. `broker` is its name as sender of frames."""
        return self._frames.after_recovery(broker, records)

    def after_power_failure(self, database: str) -> None:
        """Rereads the whole database at the next check."""
        self._commits.forget(database)
