"""The HTTP answers to errors, as plain values without Flask, so that a service layer can name them beside its outcomes."""

from dataclasses import dataclass

from werkzeug.http import HTTP_STATUS_CODES


@dataclass(frozen=True, slots=True)
class Problem:
    """The answer to an error. `detail` replaces the error's own text, which is then only logged.

    A title other than the status's name has its own type, which /docs explains.
    """

    status: int
    title: str
    detail: str | None = None

    @property
    def has_type(self) -> bool:
        """True if its type distinguishes it from other errors of the same status."""
        return self.title != HTTP_STATUS_CODES.get(self.status)


class KnowsItsProblem(Exception):
    """Base of the errors that define their own answers."""

    @property
    def problem(self) -> Problem:
        """The answer to the request with the error."""
        raise NotImplementedError
