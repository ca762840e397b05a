"""Database URLs: the one rule by which services and pipelines read them.

    sqlite:///data/orders.db                   a file, seen from the folder in which the process runs
    sqlite:////var/lib/orders.db               a file, by its absolute path
    postgresql://ann:secret@db:5432/orders     a PostgreSQL database; libpq's parameters may follow: ?sslmode=require

`postgres://` means `postgresql://`. A driver in the URL (`postgresql+psycopg2://`, `sqlite+aiosqlite://`) is read and ignored:
each program brings its own. Signs that mean something in a URL are percent-encoded in user, password and name: `@` is `%40`.
SQLite takes no parameters: the services decide how a file is opened.
"""

from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

SQLITE: Final = "sqlite"
POSTGRESQL: Final = "postgresql+psycopg"

_FORMS: Final = "sqlite:///path or postgresql://user:password@host/name is expected"
_DRIVER_OF: Final = {"sqlite": SQLITE, "postgresql": POSTGRESQL, "postgres": POSTGRESQL}


class UnusableUrl(ValueError):
    """The URL means no database that can be used. The text says why, and repeats nothing that may be a secret."""


def parse_database_url(text: str) -> URL:
    """The database that a URL means; the URL's driver name is SQLITE or POSTGRESQL. Raises UnusableUrl."""
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):
        raise UnusableUrl(f"the database URL cannot be read: {_FORMS}") from None
    kind = url.drivername.partition("+")[0]
    if kind not in _DRIVER_OF:
        raise UnusableUrl(f"no database of the kind {kind!r} can be used: {_FORMS}")
    url = url.set(drivername=_DRIVER_OF[kind])
    return _sqlite(url) if url.drivername == SQLITE else _postgresql(url)


def masked(text: str) -> str:
    """A URL as it may be logged: no password and no parameters. Text that is no URL is not shown at all."""
    try:
        return parse_database_url(text).set(query={}).render_as_string(hide_password=True)
    except UnusableUrl:
        return "<a URL that cannot be read>"


def _sqlite(url: URL) -> URL:
    if url.host:
        raise UnusableUrl(
            "a SQLite URL has three slashes before a relative path (sqlite:///data/x.db) and four before an absolute one"
        )
    if not url.database or url.database == ":memory:":
        raise UnusableUrl(
            "a database in memory would forget everything, and no other process could read it: sqlite:///path is expected"
        )
    if url.query or url.database.startswith("file:"):
        raise UnusableUrl(
            "a SQLite URL is a path and nothing else, without parameters and without file: sqlite:///path is expected"
        )
    return url


def _postgresql(url: URL) -> URL:
    if "@" in (url.host or ""):
        raise UnusableUrl("the database URL holds more than one @: write %40 for each that belongs to the user or the password")
    if not 0 < (url.port or 5432) < 65_536:
        raise UnusableUrl(f"{url.port} is no port of a database: ports end at 65535")
    return url
