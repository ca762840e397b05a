"""The intervals of a broker's background work, which does not affect clients."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """The intervals of background work in seconds. Tests that control the broker's time may lengthen them to save work."""

    upkeep_s: float = 1.0
    """The interval at which statistics are sampled, the lock of the store is checked, and expired parked messages are removed."""
    checkpoint_s: float = 5.0
    silent_clients_s: float = 10.0
    """The interval at which clients without heartbeats are removed, together with their locks."""
    silent_brokers_s: float = 10.0
    """The interval at which brokers that no longer register are removed from the name server in this process."""
    idle_notes_s: float = 2.0
    """The interval at which notes for the next start are saved while no transaction changes."""
    wall_clock_s: float = 0.1
    """The interval at which the broker checks whether the system time was changed."""
    max_sleep_s: float = 1.0
    """The maximum time that background work sleeps until its next due time.

    The time is limited because the event loop's clock may be slower than the system clock.
    """
