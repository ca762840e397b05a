"""Processes messages by the domain's rules, through a port to the database."""
