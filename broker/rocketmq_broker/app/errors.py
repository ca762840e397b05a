"""The error of a broker that cannot start."""


class StartError(Exception):
    """The broker cannot start, for example because its store is damaged or a port is in use. The text is one line."""
