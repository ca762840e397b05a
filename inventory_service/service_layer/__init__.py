"""Processes messages with the domain's rules, and with a port to the database."""
