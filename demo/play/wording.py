"""The page's languages. The sentences of code are English; texts/zh.json and the console's catalogue translate them."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from rocketmq_broker.admin.console import Pages

LANGUAGES: Final = ("en", "zh")
_TEXTS: Final = Path(__file__).parent / "texts"


@cache
def pages() -> Pages:
    """Returns the console's templates and catalogues, with those of the page."""
    return Pages([], [_TEXTS])


def translated(sentence: str, language: str) -> str:
    """Returns the sentence in the language. A sentence without a translation, or an unknown language, gives English."""
    return pages().translated(language, sentence) if language in LANGUAGES else sentence
