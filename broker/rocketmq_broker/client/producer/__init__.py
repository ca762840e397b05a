"""Producers, which send messages."""
