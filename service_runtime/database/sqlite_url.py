"""Parses the path of SQLite database URLs, without a library. See `database_url` for all forms."""

from typing import Final
from urllib.parse import unquote

SQLITE: Final = "sqlite"


class UnusableUrl(ValueError):
    """The database URL cannot be used. The text gives the reason without secrets."""


def sqlite_path(text: str) -> str | None:
    """Returns the path of a SQLite URL, or None for any other text. Raises UnusableUrl."""
    scheme, separator, rest = text.strip().partition("://")
    if not separator or scheme.partition("+")[0] != SQLITE:
        return None
    place, _, parameters = rest.partition("?")
    host, _, path = place.partition("/")
    path = unquote(path)
    if host:
        raise UnusableUrl(
            "a SQLite URL needs three slashes before a relative path (sqlite:///data/x.db) and four before an absolute one"
        )
    if not path or path == ":memory:":
        raise UnusableUrl(
            "in-memory databases are not supported: they are not durable, and other processes cannot read them; use sqlite:///path"
        )
    if parameters or path.startswith("file:"):
        raise UnusableUrl("a SQLite URL must contain only a path, without parameters and without file:; use sqlite:///path")
    return path
