"""How an error is answered over HTTP, as plain values: without Flask, so that a service layer can name it beside its outcomes."""

from dataclasses import dataclass

from werkzeug.http import HTTP_STATUS_CODES


@dataclass(frozen=True, slots=True)
class Problem:
    """How an error is answered. Without `detail` the error's own words are shown; with it they are only logged.

    A title that is not just the name of the status has a type of its own, which /docs explains.
    """

    status: int
    title: str
    detail: str | None = None

    @property
    def has_type(self) -> bool:
        """Whether callers can tell it from other errors of the same status by its type."""
        return self.title != HTTP_STATUS_CODES.get(self.status)


class KnowsItsProblem(Exception):
    """Base of the errors that say themselves how they are answered."""

    @property
    def problem(self) -> Problem:
        """The answer to the request that met the error."""
        raise NotImplementedError
