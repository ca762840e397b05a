"""The errors of commands."""


class AdminError(Exception):
    """Base of the errors of this package; the text is for the user, on one line."""


class Refused(AdminError):
    """A broker refused the request, or does not know its subject. Exit code 1."""


class NotSupported(Refused):
    """The broker, one of Apache's, does not know the request."""


class CannotAsk(AdminError):
    """No broker could be asked: its address is unusable, no program listens there, or the answer came too late. Exit code 2."""
