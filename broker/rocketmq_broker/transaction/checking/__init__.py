"""Check-backs: their due times, counts and messages, and the checks in flight. A check asks a producer for its decision."""
