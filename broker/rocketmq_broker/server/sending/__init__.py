"""Stores messages sent by producers and consumers."""
