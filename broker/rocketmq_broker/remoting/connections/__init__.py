"""Connections, with requests and responses, memory limits, and idle timeouts."""
