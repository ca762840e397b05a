"""Why a command fails."""


class AdminError(Exception):
    """Base of the errors of this package; the text is for the user, on one line."""


class Refused(AdminError):
    """A broker answered that it will not, or does not know what was asked about. Exit code 1."""


class NotSupported(Refused):
    """The broker does not know the request at all: it is one of Apache's."""


class CannotAsk(AdminError):
    """No broker could be asked: an unusable address, nobody listening, no answer in time. Exit code 2."""
