"""Maintains an open store. Writes checkpoints, drops expired data, and creates the next segment."""
