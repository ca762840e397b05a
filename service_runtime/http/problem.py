"""HTTP problems as plain values. The module does not import Flask, so that service layers can use it."""

from dataclasses import dataclass

from werkzeug.http import HTTP_STATUS_CODES


@dataclass(frozen=True, slots=True)
class Problem:
    """The HTTP response to an error. If `detail` is set, it replaces the error's text, which is then only logged.

    A title that differs from the status's standard phrase gets a problem type, which /docs explains.
    """

    status: int
    title: str
    detail: str | None = None

    @property
    def has_type(self) -> bool:
        """True if the problem has a type other than about:blank."""
        return self.title != HTTP_STATUS_CODES.get(self.status)


class ErrorWithProblem(Exception):
    """Base class of errors that define their problem response."""

    problem: Problem
    """The problem response."""
