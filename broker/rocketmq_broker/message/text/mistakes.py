"""Builds error messages about wrong arguments, with suggestions for misspelled names."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

_ALIKE = 0.7
_MIN_WORD_LENGTH = 4
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def kind_of(value: object) -> str:
    """Returns a value's type as text for a sentence, such as `a str`, `an int`, `None` or `the class Listener`."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    if name == "bytes":
        return name
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def no_such_parameter(of: str, given: Iterable[str], known: Sequence[str]) -> str:
    """Returns an error message with the unknown names, known names that are similar to them, and all known names."""
    unknown = [name for name in given if name not in known]
    meant = [nearest for name in unknown if (nearest := nearest_name(name, known))]
    names = ", ".join(map(repr, unknown))
    hint = f". Did you mean {', '.join(map(repr, dict.fromkeys(meant)))}?" if meant else "."
    return f"{of} has no parameter {names}{hint} It has: {', '.join(known)}"


def nearest_name(name: str, known: Sequence[str]) -> str | None:
    """Returns the known name that is most similar to `name`, or None.

    Names are similar if their spelling is similar, ignoring case and Java's naming style, or if they share words.
    """
    by_snake = {candidate.lower(): candidate for candidate in known}
    snake = _WORD_BEGINS.sub("_", name).lower()
    if close := get_close_matches(snake, by_snake, n=1, cutoff=_ALIKE):
        return by_snake[close[0]]
    words = [word.rstrip("s") for word in snake.split("_") if len(word) >= _MIN_WORD_LENGTH]
    shared = {candidate: sum(word in spelling for word in words) for spelling, candidate in by_snake.items()}
    best = max(shared, key=lambda candidate: (shared[candidate], -len(candidate)), default=None)
    return best if best is not None and shared[best] else None
