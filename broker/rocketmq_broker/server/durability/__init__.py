"""Flushes messages to the disk, and sends the responses that depend on it."""
