"""Check-backs: when a producer is asked, how often, with what message, and which checks are out."""
