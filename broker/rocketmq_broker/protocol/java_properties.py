"""Reads and writes Java's properties format, which RocketMQ's config files use (java.util.Properties.load)."""

import re
from collections.abc import Iterator

_SEPARATOR = re.compile(r"(?<!\\)(?:\\\\)*(?P<separator>[ \t\f]*[=:][ \t\f]*|[ \t\f]+)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_BLANKS = " \t\f"


def parse_properties(text: str) -> dict[str, str]:
    """Parses the text of a properties file. If a name occurs several times, the last value is used."""
    return dict(_name_and_value(line) for line in _logical_lines(text))


def property_line(name: str, value: str) -> str:
    """Returns a line that `parse_properties` parses to this property. Escapes unprintable characters as Java does."""
    return f"{name}={''.join(map(_escape, value))}\n"


def _escape(character: str) -> str:
    if character == "\\":
        return "\\\\"
    if character.isprintable():
        return character
    return "".join(f"\\u{code:04x}" for code in _utf16_units(character))


def _utf16_units(character: str) -> list[int]:
    encoded = character.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(encoded[at : at + 2]) for at in range(0, len(encoded), 2)]


def _logical_lines(text: str) -> Iterator[str]:
    """Yields the logical lines, without comments and blank lines.

    A line that ends in an odd number of backslashes is joined with the next line.
    """
    joined = ""
    for natural_line in text.splitlines():
        line = natural_line.lstrip(_BLANKS)
        if not joined and (not line or line[0] in "#!"):
            continue
        if (len(line) - len(line.rstrip("\\"))) % 2:
            joined += line[:-1]
            continue
        yield joined + line
        joined = ""
    if joined:
        yield joined


def _name_and_value(line: str) -> tuple[str, str]:
    match = _SEPARATOR.search(line)
    if match is None:
        return _unescaped(line), ""
    return _unescaped(line[: match.start("separator")]), _unescaped(line[match.end() :])


def _unescaped(text: str) -> str:
    unescaped = _ESCAPE.sub(_character, text)
    # Java writes a character beyond 16 bits as two escapes, a surrogate pair.
    return unescaped.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass") if "\\u" in text else unescaped


def _character(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    return _ESCAPED.get(escaped, escaped)
