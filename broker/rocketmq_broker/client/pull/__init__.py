"""Pulling messages, and where groups have come to."""
