"""Parses and formats the words of a URL, such as `place:bob:900`.

A word is the name of a button, followed by its arguments if one of them differs from its default.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote


class CannotPress(Exception):
    """Raised if a button cannot be pressed now. The error message is a sentence that the page shows."""


@dataclass(frozen=True, slots=True)
class Press:
    """A press of a button, with its arguments."""

    name: str
    arguments: Mapping[str, Any]


def press_of(word: str, defaults: Mapping[str, Mapping[str, Any]]) -> Press:
    """Parses a word, and returns the press that it describes. Raises CannotPress.

    `defaults` maps each button to its arguments with their default values.
    """
    name, *values = word.split(":")
    if name not in defaults:
        raise CannotPress(f"unknown button {name}: must be one of {', '.join(defaults)}")
    arguments = dict(defaults[name])
    if len(values) > len(arguments):
        raise CannotPress(f"{name} takes at most {len(arguments)} arguments, not {len(values)}")
    for argument, value in zip(arguments, values, strict=False):
        arguments[argument] = _like(arguments[argument], unquote(value), argument)
    return Press(name, arguments)


def pressed_words(pressed: Iterable[Press], defaults: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Formats button presses as the words of a URL. Opening the URL presses the same buttons again."""
    return [_word(press, defaults[press.name]) for press in pressed]


def _word(press: Press, defaults: Mapping[str, Any]) -> str:
    if dict(press.arguments) == dict(defaults):
        return press.name
    return ":".join([press.name, *(quote(str(value), safe="") for value in press.arguments.values())])


def _like(default: object, value: str, argument: str) -> object:
    if not isinstance(default, int):
        return value
    if not value.isdecimal():
        raise CannotPress(f"{argument} must be a whole number, not {value!r}")
    return int(value)
