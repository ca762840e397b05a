"""Checks numbers in texts from other programs."""

from __future__ import annotations

from typing import Final

_MAX_DIGITS: Final = 19
"""The digits of the largest 64-bit number. `int` would be slow, or fail, for a text with thousands of digits."""


def is_number(text: str) -> bool:
    """Returns whether the text is a number of at most 19 ASCII digits."""
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
