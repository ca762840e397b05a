"""What can be wrong with broker.conf."""


class ConfigError(Exception):
    """A file that cannot be read, or a property with a value that cannot be used; the text names it, on one line."""
