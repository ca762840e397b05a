"""Counts messages and requests, for operators and metrics."""
