"""The report on opening a store."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class RecoveryReport:
    """A report that is filled while the store is opened."""

    was_stopped_cleanly: bool
    scanned_from: int = 0
    end: int = 0
    """The commit log offset of the next record."""
    records_scanned: int = 0
    units_added: int = 0
    """Consume queue units that were missing or wrong."""
    damaged: list[tuple[int, int]] = field(default_factory=list)
    """Offset and length of each damaged stretch of the log."""
    last_store_timestamp: int = 0
    believed_ms: int | None = None
    """The time that the last broker believed at its last checkpoint; None if it is unknown."""
    actions: list[str] = field(default_factory=list)
    """The actions, in words."""
