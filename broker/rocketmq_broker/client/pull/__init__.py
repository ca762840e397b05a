"""Pulling messages, and the offsets of groups."""
