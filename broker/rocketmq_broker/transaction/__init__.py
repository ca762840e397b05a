"""Transactional messages: states and transitions, decisions, check-backs, recovery. Takes bytes, values and the time."""
