"""Handles the broker's requests. Each family of request codes has a processor."""
