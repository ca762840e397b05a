"""The error that the demo raises."""


class DemoError(Exception):
    """Raised if the demo cannot continue. The error message contains the reason and, if possible, the remedy."""
