"""SQLAlchemy's database URLs, which the services are configured with, as addresses for ADBC's drivers.

sqlite:///data/orders.db                       -> file:/current/directory/data/orders.db?mode=ro
postgresql+psycopg://user:secret@host/orders   -> postgresql://user@host/orders?connect_timeout=10   (the secret apart)
"""

from pathlib import Path
from urllib.parse import quote, urlencode

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from pipelines.database_address import DatabaseAddress, Driver
from pipelines.errors import UnusableDatabaseUrl

CONNECT_TIMEOUT_S = 10


def parse_database_url(url: str) -> DatabaseAddress:
    """The address that a SQLAlchemy URL means. Raises UnusableDatabaseUrl; its text does not repeat the URL."""
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, ValueError):
        raise UnusableDatabaseUrl("a database URL looks like sqlite:///path or postgresql://user@host/database") from None
    if backend == Driver.SQLITE:
        return _sqlite(parsed)
    if backend in (Driver.POSTGRESQL, "postgres"):
        return _postgresql(parsed)
    raise UnusableDatabaseUrl(f"no driver for {backend} databases: sqlite and postgresql are known")


def _sqlite(url: URL) -> DatabaseAddress:
    if not url.database or url.database == ":memory:":
        raise UnusableDatabaseUrl("a SQLite database in memory cannot be read by another process: name a file")
    path = Path(url.database.removeprefix("file:")).absolute()
    return DatabaseAddress(Driver.SQLITE, f"file:{quote(str(path))}?mode=ro", str(path))


def _postgresql(url: URL) -> DatabaseAddress:
    parameters = {name: value if isinstance(value, str) else value[-1] for name, value in url.query.items()}
    password = parameters.pop("password", None) or (str(url.password) if url.password else "")
    parameters.setdefault("connect_timeout", str(CONNECT_TIMEOUT_S))
    host = f"[{url.host}]" if url.host and ":" in url.host else quote(url.host or "", safe="")
    port = f":{url.port}" if url.port else ""
    user = f"{quote(url.username, safe='')}@" if url.username else ""
    database = quote(url.database or "", safe="")
    shown_host = host or parameters.get("host", "")
    return DatabaseAddress(
        Driver.POSTGRESQL,
        f"postgresql://{user}{host}{port}/{database}?{urlencode(parameters, quote_via=quote)}",
        f"{shown_host}{port}/{database}",
        password,
    )
