"""Transactional messages: half message, decision, check-back, discard; all of it bytes, values and the time given."""
