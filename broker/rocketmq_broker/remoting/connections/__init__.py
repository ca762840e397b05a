"""Connections: requests and answers, limits on memory, and idle timeouts."""
