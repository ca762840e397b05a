"""SQLite's database URLs, parsed without a library: only a path. See `database_url` for the whole rule."""

from typing import Final
from urllib.parse import unquote

SQLITE: Final = "sqlite"


class UnusableUrl(ValueError):
    """The URL names no usable database. The text gives the reason without possible secrets."""


def sqlite_path(text: str) -> str | None:
    """Returns the file of a SQLite URL; None if the URL is of another kind, or none. Raises UnusableUrl."""
    scheme, separator, rest = text.strip().partition("://")
    if not separator or scheme.partition("+")[0] != SQLITE:
        return None
    place, _, parameters = rest.partition("?")
    host, _, path = place.partition("/")
    path = unquote(path)
    if host:
        raise UnusableUrl(
            "a SQLite URL has three slashes before a relative path (sqlite:///data/x.db) and four before an absolute one"
        )
    if not path or path == ":memory:":
        raise UnusableUrl(
            "a database in memory would forget everything, and no other process could read it: sqlite:///path is expected"
        )
    if parameters or path.startswith("file:"):
        raise UnusableUrl(
            "a SQLite URL is a path and nothing else, without parameters and without file: sqlite:///path is expected"
        )
    return path
