"""The error of the config package."""


class ConfigError(Exception):
    """Raised if broker.conf cannot be read, or if a property has an invalid value. The message has one line."""
