"""The error of a broker that cannot start."""


class StartError(Exception):
    """Raised if the broker cannot start, for example because its store is damaged or a port is in use.

    The error message has one line.
    """
