"""Sending messages, and transactions with their check-backs."""
