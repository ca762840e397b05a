"""Why a broker does not start."""


class StartError(Exception):
    """The store is in use or damaged, or a port cannot be had; the text says which, on one line."""
