"""Handles messages that cannot be processed: retries during an outage, dead letters, and failpoints for demos."""
