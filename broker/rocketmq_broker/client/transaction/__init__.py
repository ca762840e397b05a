"""Sending messages in transactions, and answering check-backs."""
