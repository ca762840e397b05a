"""Sends transactional messages and answers check-backs."""
