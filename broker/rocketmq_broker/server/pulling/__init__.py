"""Pulls, queries of messages, and consumer offsets."""
