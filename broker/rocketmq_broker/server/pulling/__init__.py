"""Pulls, queries and acknowledgements of consumers."""
