"""Finds the strings in a template's source and replaces them with their translations.

A string (called a run) extends from one block element or template statement to the next. In a catalogue, `{0}` stands for an
expression within the run and `<1>` for an inline tag. Expressions and tags share one numbering. The values of some attributes are
runs, too. The content of `<pre>` is not translated.
"""

import re
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

_PIECE: Final = re.compile(
    r"(?P<edge>\{%.*?%\}|\{#.*?#\}|<!.*?>|<pre\b.*?</pre>)|(?P<expression>\{\{.*?\}\})"
    r"|(?P<tag><(?:\{\{.*?\}\}|\{%.*?%\}|[^>{]|\{(?![{%]))*>)|(?P<text>[^<{]+|.)",
    re.DOTALL,
)
_WITHIN_A_LINE: Final = re.compile(r"</?(?:a|br|code|em|span|strong)\b")
_WORDY_ATTRIBUTE: Final = re.compile(
    r"(?<=\s)(?P<name>aria-label|data-label|data-word-[a-z-]+|placeholder|title)=\"(?P<value>[^\"]*)\""
)
_PLACE: Final = re.compile(r"[{<](\d+)[}>]")

Piece: TypeAlias = tuple[str, str]
"""The kind of a piece (edge, expression, tag or text), and its source."""


def words_of(source: str) -> list[str]:
    """Returns the runs of a template's source, which are the keys of a catalogue."""
    found: list[str] = []

    def note(run: str) -> None:
        found.append(run)

    with_words(source, note)
    return found


def with_words(source: str, translate: Callable[[str], str | None]) -> str:
    """Returns the source with each run translated. `translate` returns None to keep a run."""
    return "".join(_translated(source, translate))


def _translated(source: str, translate: Callable[[str], str | None]) -> Iterator[str]:
    run: list[Piece] = []
    for found in _PIECE.finditer(source):
        kind, text = str(found.lastgroup), found[0]
        if kind == "tag":
            text = _with_attributes(text, translate)
        if kind == "edge" or (kind == "tag" and not _WITHIN_A_LINE.match(text)):
            yield from _translated_run(run, translate)
            yield text
            run = []
        else:
            run.append((kind, text))
    yield from _translated_run(run, translate)


def _translated_run(run: list[Piece], translate: Callable[[str], str | None]) -> Iterator[str]:
    begin, end = 0, len(run)
    while begin < end and _is_margin(run[begin]):
        begin += 1
    while end > begin and _is_margin(run[end - 1]):
        end -= 1
    yield from (text for _, text in run[:begin])
    yield _translated_text(run[begin:end], translate)
    yield from (text for _, text in run[end:])


def _is_margin(piece: Piece) -> bool:
    kind, text = piece
    return kind == "tag" or text.isspace()


def _translated_text(run: list[Piece], translate: Callable[[str], str | None]) -> str:
    source = "".join(text for _, text in run)
    if not any(kind == "text" and re.search(r"[A-Za-z]", text) for kind, text in run):
        return source
    places = [text for kind, text in run if kind != "text"]
    numbers = iter(range(len(places)))
    forms = {"expression": "{{{}}}", "tag": "<{}>"}
    name = "".join(text if kind == "text" else forms[kind].format(next(numbers)) for kind, text in run)
    translation = translate(" ".join(name.split()))
    if translation is None:
        return source
    before, after = source[: -len(source.lstrip())], source[len(source.rstrip()) :]
    return before + _PLACE.sub(lambda place: places[int(place[1])], translation) + after


def _with_attributes(tag: str, translate: Callable[[str], str | None]) -> str:
    def translated(attribute: re.Match[str]) -> str:
        pieces = [(str(found.lastgroup), found[0]) for found in _PIECE.finditer(attribute["value"])]
        is_plain = all(kind in {"text", "expression"} for kind, _ in pieces)
        return f'{attribute["name"]}="{_translated_text(pieces, translate) if is_plain else attribute["value"]}"'

    return _WORDY_ATTRIBUTE.sub(translated, tag)
