"""The result of a failed check, with expected and actual values."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compared:
    """A field of a frame or file, with the actual and the expected bytes."""

    name: str
    got: bytes
    wanted: bytes

    @property
    def is_right(self) -> bool:
        """True if the actual bytes equal the expected bytes."""
        return self.got == self.wanted


class Failed(Exception):
    """A check failed. The exception contains the expected result, the actual result, and the compared bytes."""

    def __init__(self, wanted: str, got: str, *, fields: Sequence[Compared] = (), place: str = "", hint: str = "") -> None:
        """Creates the exception. `place` describes where `fields` were read; `hint` explains the difference."""
        super().__init__(f"wanted {wanted}; got {got}")
        self.wanted = wanted
        self.got = got
        self.fields = tuple(fields)
        self.place = place
        self.hints = [hint] if hint else []


class Interrupted(Exception):
    """The tester was interrupted, for example with Ctrl-C."""
