"""What a check says when the broker does something else than it should."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Compared:
    """One field of a frame or file: the bytes that are there, and the bytes that should be there."""

    name: str
    got: bytes
    wanted: bytes

    @property
    def is_right(self) -> bool:
        """Whether both are equal."""
        return self.got == self.wanted


class Failed(Exception):
    """A claim that does not hold: what was wanted, what there was instead, and the bytes if bytes show it best."""

    def __init__(self, wanted: str, got: str, *, fields: Sequence[Compared] = (), place: str = "", hint: str = "") -> None:
        """`place` says which bytes `fields` are; `hint` says what this very difference suggests."""
        super().__init__(f"wanted {wanted}; got {got}")
        self.wanted = wanted
        self.got = got
        self.fields = tuple(fields)
        self.place = place
        self.hints = [hint] if hint else []


class Interrupted(Exception):
    """The tester was told to stop."""
