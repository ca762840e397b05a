"""Transactional messages: states and transitions, decisions, check-backs, recovery. It takes bytes, values and the time."""
