"""The exception for a commit log that cannot be read."""


class UnreadableStore(Exception):
    """Raised if the commit log is missing, if a file cannot be opened, or if the broker does not respond."""
