"""Runs that read what is new: how far each source was read, what is still open, and what is settled for good."""
