"""The error for an invalid broker.conf."""


class ConfigError(Exception):
    """Raised if the file cannot be read or a property has an invalid value.

    The message describes the problem on one line.
    """
