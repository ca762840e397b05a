"""The client's reading of the time."""

from rocketmq_broker.world import current_world


def now_ms() -> int:
    """Returns milliseconds since the epoch."""
    return current_world().wall_ms()
