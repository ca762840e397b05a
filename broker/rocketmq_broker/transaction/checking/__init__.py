"""Check-backs: when they are due, their number, their message, and the checks in flight."""
