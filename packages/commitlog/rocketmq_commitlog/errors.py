"""The reason why a commit log cannot be read."""


class UnreadableStore(Exception):
    """A store directory without a commit log, or one that cannot be opened; a broker that does not answer."""
