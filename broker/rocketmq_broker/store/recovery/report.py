"""The report of a store's recovery."""

from dataclasses import dataclass, field


@dataclass(slots=True)
class RecoveryReport:
    """The findings and actions of a recovery."""

    was_stopped_cleanly: bool
    scanned_from: int = 0
    end: int = 0
    """The commit log offset of the next record."""
    records_scanned: int = 0
    units_added: int = 0
    """The number of rebuilt consume queue units."""
    damaged: list[tuple[int, int]] = field(default_factory=list)
    """The commit log offset and the length in bytes of each damaged stretch of the log."""
    last_store_timestamp: int = 0
    believed_ms: int | None = None
    """The time of the broker's ExpiryClock at the last checkpoint, in milliseconds since the epoch, or None if unknown."""
    actions: list[str] = field(default_factory=list)
    """A description of each action, for the operator."""
