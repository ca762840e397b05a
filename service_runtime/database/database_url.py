"""Database URLs, parsed by one rule for services and pipelines.

    sqlite:///data/orders.db                   a file, seen from the folder in which the process runs
    sqlite:////var/lib/orders.db               a file, by its absolute path
    postgresql://ann:secret@db:5432/orders     a PostgreSQL database; libpq's parameters may follow: ?sslmode=require

    postgresql://ann:secret@pool:6432/orders?pgbouncer=true     the same behind a PgBouncer that pools transactions

`postgres://` means `postgresql://`. A driver in the URL (`postgresql+psycopg2://`, `sqlite+aiosqlite://`) is accepted and
ignored: each program brings its own. Characters with a meaning in URLs are percent-encoded in user, password and name: `@` is
`%40`. SQLite takes no parameters: the services decide how to open a file.
"""

from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from service_runtime.database.sqlite_url import SQLITE, UnusableUrl, sqlite_path

__all__ = ["POSTGRESQL", "SQLITE", "UnusableUrl", "is_behind_pgbouncer", "masked", "parse_database_url"]

POSTGRESQL: Final = "postgresql+psycopg"

_FORMS: Final = "sqlite:///path or postgresql://user:password@host/name is expected"
PGBOUNCER: Final = "pgbouncer"
"""Our parameter, which libpq does not know."""
_POSTGRESQL_NAMES: Final = ("postgresql", "postgres")


def parse_database_url(text: str) -> URL:
    """Parses a database URL; the result's driver name is SQLITE or POSTGRESQL, and has no PGBOUNCER. Raises UnusableUrl."""
    return _parsed(text).difference_update_query([PGBOUNCER])


def is_behind_pgbouncer(text: str) -> bool:
    """Returns whether the database URL says `pgbouncer=true`. Raises UnusableUrl."""
    return _parsed(text).query.get(PGBOUNCER) == "true"


def _parsed(text: str) -> URL:
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
    pooling = url.query.get(PGBOUNCER, "false")
    if pooling not in ("true", "false"):
        raise UnusableUrl("the parameter pgbouncer of a database URL is true or false, and is given once")
    if pooling == "true" and "options" in url.query:
        raise UnusableUrl(
            "a database URL with pgbouncer=true has no options: PgBouncer refuses them; ALTER ROLE … SET can set them"
        )
    return url
