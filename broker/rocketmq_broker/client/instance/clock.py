"""The time, read where the client needs it."""

from rocketmq_broker.world import current_world


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return current_world().wall_ms()
