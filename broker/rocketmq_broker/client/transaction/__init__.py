"""Sends transactional messages and responds to check-backs."""
