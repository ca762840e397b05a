"""Passing messages to listeners, concurrently or in order."""
