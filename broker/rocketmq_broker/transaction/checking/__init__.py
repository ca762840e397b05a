"""Check-backs: their due times, counts and messages, and the checks in flight."""
