"""The errors of broker.conf."""


class ConfigError(Exception):
    """A file that cannot be read, or a property whose value cannot be used; the text names it, on one line."""
