"""Why the demo cannot go on, in words for whoever started it."""


class DemoError(Exception):
    """The demo cannot go on; the text says why, and what to do if something can be done."""
