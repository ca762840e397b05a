"""The validation of text from outside."""

import unicodedata
from typing import Final

from pydantic import AfterValidator


def _without_control_characters(text: str) -> str:
    """Returns the text. Raises ValueError if it contains control characters: PostgreSQL cannot store NUL."""
    if not text.isprintable() and any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise ValueError("must not contain control characters")
    return text


NO_CONTROL_CHARACTERS: Final = AfterValidator(_without_control_characters)
"""A pydantic validator for text without control characters."""
