"""The rule for text from outside."""

import unicodedata
from typing import Final

from pydantic import AfterValidator


def _without_control_characters(text: str) -> str:
    """Returns text without control characters: PostgreSQL stores no NUL, and nobody can read the others. Raises ValueError."""
    if not text.isprintable() and any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise ValueError("holds a control character")
    return text


NO_CONTROL_CHARACTERS: Final = AfterValidator(_without_control_characters)
"""For the annotation of a field: text without control characters."""
