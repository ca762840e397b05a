"""The findings of a failed check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compared:
    """One field of a frame or file: the present bytes, and the expected ones."""

    name: str
    got: bytes
    wanted: bytes

    @property
    def is_right(self) -> bool:
        """True if both are equal."""
        return self.got == self.wanted


class Failed(Exception):
    """A failed claim: the expected result, the actual one, and the bytes if they show it best."""

    def __init__(self, wanted: str, got: str, *, fields: Sequence[Compared] = (), place: str = "", hint: str = "") -> None:
        """`place` names the bytes of `fields`; `hint` explains this difference."""
        super().__init__(f"wanted {wanted}; got {got}")
        self.wanted = wanted
        self.got = got
        self.fields = tuple(fields)
        self.place = place
        self.hints = [hint] if hint else []


class Interrupted(Exception):
    """The tester was told to stop."""
