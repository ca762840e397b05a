"""The error for an invalid broker.conf."""


class ConfigError(Exception):
    """Raised for a file that cannot be read or a property with an invalid value.

    The message describes the problem on one line.
    """
