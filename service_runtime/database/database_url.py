"""Database URLs, parsed by one rule for services and pipelines.

    sqlite:///data/orders.db                   a file, seen from the folder in which the process runs
    sqlite:////var/lib/orders.db               a file, by its absolute path
    postgresql://ann:secret@db:5432/orders     a PostgreSQL database; libpq's parameters may follow: ?sslmode=require

`postgres://` means `postgresql://`. A driver in the URL (`postgresql+psycopg2://`, `sqlite+aiosqlite://`) is accepted and
ignored: each program brings its own. Characters with a meaning in URLs are percent-encoded in user, password and name: `@` is
`%40`. SQLite takes no parameters: the services decide how to open a file.
"""

from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from service_runtime.database.sqlite_url import SQLITE, UnusableUrl, sqlite_path

__all__ = ["POSTGRESQL", "SQLITE", "UnusableUrl", "masked", "parse_database_url"]

POSTGRESQL: Final = "postgresql+psycopg"

_FORMS: Final = "sqlite:///path or postgresql://user:password@host/name is expected"
_POSTGRESQL_NAMES: Final = ("postgresql", "postgres")


def parse_database_url(text: str) -> URL:
    """Parses a database URL; the result's driver name is SQLITE or POSTGRESQL. Raises UnusableUrl."""
    path = sqlite_path(text)
    if path is not None:
        return URL.create(SQLITE, database=path)
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):
        raise UnusableUrl(f"the database URL cannot be read: {_FORMS}") from None
    kind = url.drivername.partition("+")[0]
    if kind not in _POSTGRESQL_NAMES:
        raise UnusableUrl(f"no database of the kind {kind!r} can be used: {_FORMS}")
    return _postgresql(url.set(drivername=POSTGRESQL))


def masked(text: str) -> str:
    """Returns a URL for logs, without password and parameters. Hides text that is no URL."""
    try:
        return parse_database_url(text).set(query={}).render_as_string(hide_password=True)
    except UnusableUrl:
        return "<a URL that cannot be read>"


def _postgresql(url: URL) -> URL:
    if "@" in (url.host or ""):
        raise UnusableUrl("the database URL holds more than one @: write %40 for each that belongs to the user or the password")
    if not 0 < (url.port or 5432) < 65_536:
        raise UnusableUrl(f"{url.port} is no port of a database: ports end at 65535")
    return url
