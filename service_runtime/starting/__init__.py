"""Starts a service's process, and prints why it cannot start."""
