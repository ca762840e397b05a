"""The errors of commands."""


class AdminError(Exception):
    """Base class of the errors of this package. The message is one line for the user."""


class Refused(AdminError):
    """Raised if a broker rejects the request, or if nothing was found. Exit code 1."""


class NotSupported(Refused):
    """Raised if the broker does not support the request, for example because it is an Apache broker."""


class CannotAsk(AdminError):
    """Raised if a broker cannot be reached: invalid address, failed connection, time-out or invalid answer. Exit code 2."""
