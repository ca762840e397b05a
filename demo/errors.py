"""The reason why the demo cannot go on, in words for the user."""


class DemoError(Exception):
    """The demo cannot go on; the text gives the reason and, if there is one, the remedy."""
