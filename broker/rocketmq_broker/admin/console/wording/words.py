"""The words of one language: those of templates, which are loaded in it, and those that the console's programs say."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from jinja2 import BaseLoader, Environment

from rocketmq_broker.admin.console.wording.template_words import with_words

ENGLISH: Final = "en"
LANGUAGES: Final[Mapping[str, str]] = {ENGLISH: "English", "zh": "中文"}
"""Each language, and its own name for itself."""
_PLACE: Final = re.compile(r"\\\{(\d+)\\\}")


class Words:
    """A catalogue, from English. English itself has none, and each word stays as it is."""

    def __init__(self, templates: Mapping[str, str], sentences: Mapping[str, str]) -> None:
        """`templates` has the runs of words that templates have; `sentences` what programs say, with `{0}` for what differs."""
        self.templates = templates
        self._sentences = sentences
        self._patterns = [(_pattern(english), translation) for english, translation in sentences.items() if "{0}" in english]

    @classmethod
    def of(cls, language: str, folders: Iterable[Path]) -> Words:
        """Returns the words in LANGUAGE.json of all these folders. Where they differ the first folder counts."""
        templates: dict[str, str] = {}
        sentences: dict[str, str] = {}
        for file in (folder / f"{language}.json" for folder in folders):
            if file.exists():
                catalogue = json.loads(file.read_text(encoding="utf-8"))
                templates = {**catalogue["templates"], **templates}
                sentences = {**catalogue["sentences"], **sentences}
        return cls(templates, sentences)

    def told(self, said: object) -> object:
        """Returns a sentence of a program in this language; what the catalogue lacks stays as it is."""
        if not isinstance(said, str):
            return said
        if said in self._sentences:
            return self._sentences[said]
        for pattern, translation in self._patterns:
            if found := pattern.fullmatch(said):
                return translation.format(*found.groups())
        return said


class TemplatesInWords(BaseLoader):
    """Loads the templates of another loader in the words of a language. A run of words without translation stays English."""

    def __init__(self, loader: BaseLoader, words: Words) -> None:
        self._loader = loader
        self._words = words

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        """Returns the source in this language."""
        source, filename, uptodate = self._loader.get_source(environment, template)
        return with_words(source, self._words.templates.get), filename, uptodate


def _pattern(english: str) -> re.Pattern[str]:
    return re.compile(_PLACE.sub(r"(?P<_\1>.+?)", re.escape(english)), re.DOTALL)
