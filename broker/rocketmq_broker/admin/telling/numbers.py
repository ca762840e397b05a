"""Numbers in texts that come from elsewhere."""

from __future__ import annotations

from typing import Final

_LONGEST: Final = 19
"""Digits of the greatest 64-bit number: `int` of a text of thousands would raise an error, or take long."""


def is_number(text: str) -> bool:
    """Whether the text is a number of ASCII digits that is not too long to be one of RocketMQ's."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST
