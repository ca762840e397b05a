"""Processes batches of messages with the domain's rules, and with a port to the writer of credits."""
