"""SQLite's database URLs, which need no library to be read: a path and nothing else. See `database_url` for the whole rule."""

from typing import Final
from urllib.parse import unquote

SQLITE: Final = "sqlite"


class UnusableUrl(ValueError):
    """The URL means no database that can be used. The text says why, and repeats nothing that may be a secret."""


def sqlite_path(text: str) -> str | None:
    """The file that a SQLite URL means; None if the URL is of another kind, or no URL. Raises UnusableUrl."""
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
