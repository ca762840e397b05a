"""How often a broker does what no client waits for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Intervals in seconds. A maker that owns the broker's time may lengthen them: each turn costs, and answers no client."""

    upkeep_s: float = 1.0
    """Statistics, the store's lock, and messages that were kept for too long."""
    checkpoint_s: float = 5.0
    silent_clients_s: float = 10.0
    """Closing clients that no longer send heartbeats, and forgetting their locks."""
    silent_brokers_s: float = 10.0
    """Forgetting brokers that no longer register with the name server in this process."""
    idle_notes_s: float = 2.0
    """Notes for the next start while no transaction changes."""
    wall_clock_s: float = 0.1
    """Looking whether somebody has set the wall clock."""
    longest_sleep_s: float = 1.0
    """The event loop's clock may go slower than the wall clock: what is due at a date is late by no more than this."""
