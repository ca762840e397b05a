"""The guided rounds: each round has steps, a question with its answer, and the expected state after the last step.

The texts of the rounds are in texts/rounds.json.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from demo.play.wording import LANGUAGES

_FILE: Final = Path(__file__).parent / "texts" / "rounds.json"


@dataclass(frozen=True, slots=True)
class RoundText:
    """The sentences of a round in one language."""

    title: str
    text: str
    steps: tuple[str, ...]
    """A sentence for each step."""
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class RoundEnd:
    """The expected state of a session after the last step of a round."""

    orders: int
    """The number of orders in the order database."""
    credits: int
    """The number of credits in the credit database."""
    findings: tuple[str, ...]
    """The problems that the reconciliation's rules find."""
    log_bytes: int
    sha256: str
    """The hash of the commit log."""


@dataclass(frozen=True, slots=True)
class Round:
    """A guided round, which explains one behaviour in several steps."""

    name: str
    seed: int
    steps: tuple[tuple[str, ...], ...]
    """The words of each step."""
    texts: Mapping[str, RoundText]
    """The texts by language."""
    end: RoundEnd

    @property
    def words(self) -> list[str]:
        """The words of all steps. In a URL, they lead to the end of the round."""
        return [word for step in self.steps for word in step]

    def to_json(self, language: str) -> dict[str, Any]:
        """Returns the round as values for JSON, with its texts in the given language. An unknown language gives English."""
        text = self.texts[language if language in LANGUAGES else LANGUAGES[0]]
        steps = [{"text": sentence, "words": list(words)} for sentence, words in zip(text.steps, self.steps, strict=True)]
        return {
            "name": self.name, "seed": self.seed, "title": text.title, "text": text.text, "steps": steps,
            "question": text.question, "answer": text.answer, "words": self.words,
        }  # fmt: skip


def rounds_in(language: str) -> list[dict[str, Any]]:
    """Returns all rounds as values for JSON, with their texts in the given language."""
    return [each.to_json(language) for each in ROUNDS]


def _text(said: Mapping[str, Any]) -> RoundText:
    return RoundText(said["title"], said["text"], tuple(said["steps"]), said["question"], said["answer"])


def _round(said: Mapping[str, Any]) -> Round:
    texts = {language: _text(said[language]) for language in LANGUAGES}
    end = said["end"]
    steps = tuple(tuple(words.split(",")) for words in said["steps"])
    return Round(said["name"], said["seed"], steps, texts, RoundEnd(**{**end, "findings": tuple(end["findings"])}))


ROUNDS: Final = tuple(_round(said) for said in json.loads(_FILE.read_text(encoding="utf-8")))
"""The rounds in the order in which the page offers them."""
