"""The exception for a commit log that cannot be read."""


class UnreadableStore(Exception):
    """The commit log cannot be read: the store directory has none, a file cannot be opened, or the broker does not answer."""
