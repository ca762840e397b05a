"""The error that the demo raises."""


class DemoError(Exception):
    """The demo cannot continue. The text gives the reason and, if possible, the remedy."""
