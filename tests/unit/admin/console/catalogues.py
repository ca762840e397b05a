"""What a catalogue of the console's words lacks, and what it has in vain."""

from __future__ import annotations

import json
import re
from pathlib import Path

from rocketmq_broker.admin.console.wording.template_words import words_of

CONSOLE = Path(__file__).parents[4] / "broker" / "rocketmq_broker" / "admin" / "console" / "templates"


def templates_of(folder: Path, catalogue: str = "templates") -> dict[str, str]:
    """That part of the folder's Chinese catalogue."""
    words: dict[str, str] = json.loads((folder / "zh.json").read_text(encoding="utf-8"))[catalogue]
    return words


def runs_of(folder: Path) -> dict[str, str]:
    """Each run of words in the folder's templates, and the first template that has it."""
    runs: dict[str, str] = {}
    for template in sorted(folder.glob("*.html")):
        for run in words_of(template.read_text()):
            runs.setdefault(run, template.name)
    return runs


def lost_places(english: str, translation: str) -> set[str]:
    """The tags of a run that its translation lacks, and the places that it has in addition; it may leave out an expression."""
    places = re.compile(r"<\d+>|\{\d+\}")
    before, after = places.findall(english), places.findall(translation)
    return {place for place in before if place[0] == "<" and place not in after} | {
        place for place in after if place not in before
    }
