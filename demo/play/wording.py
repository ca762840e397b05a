"""Translates the page's English texts, with texts/zh.json and the console's catalogue."""

from functools import cache
from pathlib import Path
from typing import Final

from rocketmq_broker.admin.console import Pages

LANGUAGES: Final = ("en", "zh")
_TEXTS: Final = Path(__file__).parent / "texts"


@cache
def pages() -> Pages:
    """Returns the console's templates and catalogues, extended by the page's catalogue."""
    return Pages([], [_TEXTS])


def translated(sentence: str, language: str) -> str:
    """Returns the sentence in the given language, or unchanged if there is no translation or the language is unknown."""
    return pages().translated(language, sentence) if language in LANGUAGES else sentence
