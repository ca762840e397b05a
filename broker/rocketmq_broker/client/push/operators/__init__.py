"""Operators' view of a push consumer, and their requests to it."""
