"""The catalogue of a language, which translates strings in templates and sentences produced by code."""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from jinja2 import BaseLoader, Environment

from rocketmq_broker.admin.console.wording.template_words import with_words

ENGLISH: Final = "en"
LANGUAGES: Final[Mapping[str, str]] = {ENGLISH: "English", "zh": "中文"}
"""The languages with their native names."""
_PLACE: Final = re.compile(r"\\\{(\d+)\\\}")


class Words:
    """A catalogue of translations from English. It is empty for English."""

    def __init__(self, templates: Mapping[str, str], sentences: Mapping[str, str]) -> None:
        """`templates` and `sentences` translate the strings in templates and in code. `{0}` stands for a variable part."""
        self.templates = templates
        self._sentences = sentences
        self._patterns = [(_pattern(english), translation) for english, translation in sentences.items() if "{0}" in english]

    @classmethod
    def of(cls, language: str, folders: Iterable[Path]) -> "Words":
        """Returns a catalogue that combines the files LANGUAGE.json of all folders. Earlier folders take precedence."""
        templates: dict[str, str] = {}
        sentences: dict[str, str] = {}
        for file in (folder / f"{language}.json" for folder in folders):
            if file.exists():
                catalogue = json.loads(file.read_text(encoding="utf-8"))
                templates = {**catalogue["templates"], **templates}
                sentences = {**catalogue["sentences"], **sentences}
        return cls(templates, sentences)

    def translated(self, sentence: object) -> object:
        """Returns the translation of a sentence; the sentence itself if it is not in the catalogue."""
        if not isinstance(sentence, str):
            return sentence
        if sentence in self._sentences:
            return self._sentences[sentence]
        for pattern, translation in self._patterns:
            if found := pattern.fullmatch(sentence):
                return translation.format(*found.groups())
        return sentence


class TemplatesInWords(BaseLoader):
    """Loads another loader's templates and translates them into a language. A run without a translation stays English."""

    def __init__(self, loader: BaseLoader, words: Words) -> None:
        self._loader = loader
        self._words = words

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, Callable[[], bool] | None]:
        """Returns the translated source of a template."""
        source, filename, uptodate = self._loader.get_source(environment, template)
        return with_words(source, self._words.templates.get), filename, uptodate


def _pattern(english: str) -> re.Pattern[str]:
    return re.compile(_PLACE.sub(r"(?P<_\1>.+?)", re.escape(english)), re.DOTALL)
