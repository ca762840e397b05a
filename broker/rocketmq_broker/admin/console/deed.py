"""The effect of a form of the console, requested by POST with the token that only a page of this console has."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from rocketmq_broker.admin.console.visit import Visit


class RefusedForm(NamedTuple):
    """A form that was refused, and its fields, which it keeps."""

    path: str
    fields: Mapping[str, str]

    def kept(self, path: str, name: str, otherwise: object = "", /, **where: str) -> object:
        """Returns a field's value if the form at `path`, with the values of `where` in other fields, was refused."""
        if path != self.path or any(self.fields.get(field) != value for field, value in where.items()):
            return otherwise
        return self.fields.get(name, "")


NOT_REFUSED: Final = RefusedForm("", {})


@dataclass(frozen=True, slots=True)
class Deed:
    """An action that changes a broker's data."""

    path: str
    do: Callable[[Visit], Awaitable[str]]
    """Does it, and returns a sentence about the result. Raises AdminError."""
    back_to: Callable[[Visit], str]
    """The page that the visitor sees then."""
    is_said: bool = True
    """Whether that page shows the sentence. False where the page tells by itself how it goes."""
    form_at: Callable[[Visit], str] | None = None
    """The page with the form, which comes again with its fields filled in if it is refused; None if `back_to` is it."""
