"""Check-backs: their times, their number, their message, and the checks in flight."""
