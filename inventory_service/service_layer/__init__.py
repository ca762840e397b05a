"""Processes messages with the domain's rules, and with ports to the database and the broker."""
