"""The reason why a broker does not start."""


class StartError(Exception):
    """A store that is in use or damaged, or a port that cannot be used; the text says which, on one line."""
