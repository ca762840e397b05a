"""The errors of commands."""


class AdminError(Exception):
    """Base class of the errors of this package. The message is one line for the user."""


class Refused(AdminError):
    """Raised if a broker rejects the request, or if nothing was found. The exit code is 1."""


class NotSupported(Refused):
    """Raised if the broker does not support the request, for example because it is an Apache broker."""


class CannotAsk(AdminError):
    """Raised for an invalid address, a failed connection, a timeout or an invalid response from a broker. The exit code is 2."""
