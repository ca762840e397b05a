"""The intervals of a broker's background work, for which no client waits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Intervals in seconds. A maker that owns the broker's time may lengthen them: each turn costs, and answers no client."""

    upkeep_s: float = 1.0
    """Statistics, the store's lock, and messages that were kept for too long."""
    checkpoint_s: float = 5.0
    silent_clients_s: float = 10.0
    """Removal of clients that no longer send heartbeats, and of their locks."""
    silent_brokers_s: float = 10.0
    """Removal of brokers that no longer register with the name server in this process."""
    idle_notes_s: float = 2.0
    """Notes for the next start while no transaction changes."""
    wall_clock_s: float = 0.1
    """Checks whether the wall clock was set."""
    longest_sleep_s: float = 1.0
    """The most delay of work due at a date: the event loop's clock may go slower than the wall clock."""
