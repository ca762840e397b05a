"""Reads the messages of a broker from the files of its store, or by pulling its queues."""
