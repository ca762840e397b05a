"""Parses the database URLs of services and pipelines.

    sqlite:///data/orders.db                   a file, relative to the process's working directory
    sqlite:////var/lib/orders.db               a file with an absolute path
    postgresql://ann:secret@db:5432/orders     a PostgreSQL database; libpq's parameters may follow: ?sslmode=require

    postgresql://ann:secret@pool:6432/orders?pgbouncer=true     PostgreSQL behind a PgBouncer in transaction pooling mode

`postgres://` is accepted for `postgresql://`. A driver in the URL (`postgresql+psycopg2://`, `sqlite+aiosqlite://`) is accepted
but ignored, because each program chooses its own driver. Reserved characters in user, password and name are percent-encoded: `@`
is `%40`. SQLite URLs have no parameters, because the services decide how to open the file.
"""

from typing import Final

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from service_runtime.database.sqlite_url import SQLITE, UnusableUrl, sqlite_path

__all__ = ["POSTGRESQL", "SQLITE", "UnusableUrl", "is_behind_pgbouncer", "masked", "parse_database_url"]

POSTGRESQL: Final = "postgresql+psycopg"

_FORMS: Final = "use sqlite:///path or postgresql://user:password@host/name"
PGBOUNCER: Final = "pgbouncer"
"""The URL parameter for a database behind PgBouncer. It is specific to this project and unknown to libpq."""
_POSTGRESQL_NAMES: Final = ("postgresql", "postgres")


def parse_database_url(text: str) -> URL:
    """Parses a database URL.

    Raises UnusableUrl. The result's driver name is SQLITE or POSTGRESQL. The parameter PGBOUNCER is removed.
    """
    return _parsed(text).difference_update_query([PGBOUNCER])


def is_behind_pgbouncer(text: str) -> bool:
    """Returns True if the database URL contains `pgbouncer=true`. Raises UnusableUrl."""
    return _parsed(text).query.get(PGBOUNCER) == "true"


def _parsed(text: str) -> URL:
    path = sqlite_path(text)
    if path is not None:
        return URL.create(SQLITE, database=path)
    try:
        url = make_url(text.strip())
    except (ArgumentError, ValueError):
        raise UnusableUrl(f"invalid database URL; {_FORMS}") from None
    kind = url.drivername.partition("+")[0]
    if kind not in _POSTGRESQL_NAMES:
        raise UnusableUrl(f"unsupported database {kind!r}; {_FORMS}")
    if "@" in (url.host or ""):
        raise UnusableUrl("the database URL contains more than one @; write %40 for @ in the user or the password")
    if not 0 < (url.port or 5432) < 65_536:
        raise UnusableUrl(f"invalid port {url.port} in the database URL, at most 65535")
    pooling = url.query.get(PGBOUNCER, "false")
    if pooling not in ("true", "false"):
        raise UnusableUrl("the parameter pgbouncer of the database URL must be true or false, and must not be repeated")
    if pooling == "true" and "options" in url.query:
        raise UnusableUrl(
            "a database URL with pgbouncer=true must not contain options, which PgBouncer refuses; use ALTER ROLE … SET"
        )
    return url.set(drivername=POSTGRESQL)


def masked(text: str) -> str:
    """Returns the URL for logs, without password and parameters other than hosts and ports. Returns a placeholder if invalid."""
    try:
        url = parse_database_url(text)
    except UnusableUrl:
        return "<an invalid URL>"
    hosts = {name: value for name, value in url.query.items() if name in ("host", "port")}
    return url.set(query=hosts).render_as_string(hide_password=True)
