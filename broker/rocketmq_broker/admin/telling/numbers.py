"""Numbers in texts from other programs."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 19
"""Digits of the greatest 64-bit number: `int` of a text of thousands would raise an error, or take long."""


def is_number(text: str) -> bool:
    """Returns whether the text is a number of ASCII digits, short enough to be one of RocketMQ's."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST
