"""Form actions of the console. A form is submitted by POST, with the CSRF token from a page of this console."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from rocketmq_broker.admin.console.visit import Visit


class RefusedForm(NamedTuple):
    """A rejected form, with the values that the visitor entered."""

    path: str
    fields: Mapping[str, str]

    def kept(self, path: str, name: str, otherwise: object = "", /, **where: str) -> object:
        """Returns the rejected value of the field `name`, so that the form can show it again.

        Returns `otherwise` if the rejected form's path is not `path`, or if its fields do not have the values in `where`.
        """
        if path != self.path or any(self.fields.get(field) != value for field, value in where.items()):
            return otherwise
        return self.fields.get(name, "")


NOT_REFUSED: Final = RefusedForm("", {})


@dataclass(frozen=True, slots=True)
class FormAction:
    """A form action that changes a broker's data."""

    path: str
    do: Callable[[Visit], Awaitable[str]]
    """A function that performs the action and returns a sentence about the result. Raises AdminError."""
    back_to: Callable[[Visit], str]
    """A function that returns the address of the page to show afterwards."""
    shows_result: bool = True
    """Whether the page of `back_to` shows the sentence. False if that page already shows the action's progress."""
    form_at: Callable[[Visit], str] | None = None
    """A function that returns the address of the form's page, which is shown again with filled fields if the form is rejected.

    If it is None, the page of `back_to` is shown instead.
    """
