"""Processes batches of messages according to the domain's rules, and writes the credits through a port."""
