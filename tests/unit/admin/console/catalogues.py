"""Finds texts that a catalogue of the console lacks, and entries that the console does not use."""

import ast
import json
import re
from pathlib import Path

from rocketmq_broker.admin.console.wording.template_words import words_of

CONSOLE = Path(__file__).parents[4] / "broker" / "rocketmq_broker" / "admin" / "console" / "templates"


def templates_of(folder: Path, catalogue: str = "templates") -> dict[str, str]:
    """Returns one section of the folder's Chinese catalogue."""
    words: dict[str, str] = json.loads((folder / "zh.json").read_text(encoding="utf-8"))[catalogue]
    return words


def runs_of(folder: Path) -> dict[str, str]:
    """Returns each text run in the folder's templates, with the first template that contains it."""
    runs: dict[str, str] = {}
    for template in sorted(folder.glob("*.html")):
        for run in words_of(template.read_text(encoding="utf-8")):
            runs.setdefault(run, template.name)
    return runs


def lost_places(english: str, translation: str) -> set[str]:
    """Returns the tags that the translation lacks, and its placeholders that the English text lacks.

    A translation may omit placeholders.
    """
    places = re.compile(r"<\d+>|\{\d+\}")
    before, after = places.findall(english), places.findall(translation)
    return {place for place in before if place[0] == "<" and place not in after} | {
        place for place in after if place not in before
    }


def sentences_of(module: Path) -> set[str]:
    """Returns the success and refusal sentences of a module's forms, with `{0}` for each inserted value."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Refused":
            found |= {f"{said[0].upper()}{said[1:]}." for said in map(literal, node.args) if said}
        elif isinstance(node, ast.AsyncFunctionDef) and node.returns is not None and ast.unparse(node.returns) == "str":
            returned = (inner.value for inner in ast.walk(node) if isinstance(inner, ast.Return))
            found |= {said for said in map(literal, returned) if said}
    return found


def literal(node: ast.expr | None) -> str:
    """Returns the sentence that a literal or an f-string contains, or an empty string for another expression."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if not isinstance(node, ast.JoinedStr):
        return ""
    numbers = iter(range(len(node.values)))
    return "".join(str(part.value) if isinstance(part, ast.Constant) else f"{{{next(numbers)}}}" for part in node.values)
