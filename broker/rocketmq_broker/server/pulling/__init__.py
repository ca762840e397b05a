"""Handles pulls, queries of messages, and requests about consumer offsets."""
