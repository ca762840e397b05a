"""The intervals of a broker's background work, which does not affect clients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Intervals in seconds. Tests that control the broker's time may lengthen them to save work."""

    upkeep_s: float = 1.0
    """Statistics, the check of the store's lock, and removal of expired parked messages."""
    checkpoint_s: float = 5.0
    silent_clients_s: float = 10.0
    """Removal of clients that no longer send heartbeats, and of their locks."""
    silent_brokers_s: float = 10.0
    """Removal of brokers that no longer register with the name server in this process."""
    idle_notes_s: float = 2.0
    """Notes for the next start while no transaction changes."""
    wall_clock_s: float = 0.1
    """Checks whether the system time was set."""
    max_sleep_s: float = 1.0
    """The limit of a sleep until a due time, because the event loop's clock may be slower than the system clock."""
