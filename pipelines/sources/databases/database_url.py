"""Converts database URLs, in the services' format, into addresses for ADBC's drivers.

sqlite:///data/orders.db             -> file:/current/directory/data/orders.db?mode=ro
postgresql://user:secret@host/orders -> postgresql://user@host/orders?connect_timeout=10&client_encoding=UTF8   (without secret)
"""

from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from pipelines.errors import UnusableDatabaseUrl
from pipelines.sources.databases.database_address import DatabaseAddress, Driver
from service_runtime.database.sqlite_url import UnusableUrl, sqlite_path

CONNECT_TIMEOUT_S: Final = 10


def parse_database_url(url: str) -> DatabaseAddress:
    """Returns the address of a database URL. Raises UnusableDatabaseUrl; its text does not contain the URL."""
    try:
        path = sqlite_path(url)
        return _postgresql(url) if path is None else _sqlite(Path(path).absolute())
    except UnusableUrl as error:
        raise UnusableDatabaseUrl(str(error)) from None


def _sqlite(path: Path) -> DatabaseAddress:
    return DatabaseAddress(Driver.SQLITE, f"file:{quote(str(path))}?mode=ro", str(path))


def _postgresql(url: str) -> DatabaseAddress:
    """Converts the URL into libpq's keywords with SQLAlchemy's dialect, like the services. Raises UnusableUrl."""
    # Imported here because it imports SQLAlchemy, which is not needed for SQLite.
    from service_runtime.database.database_url import parse_database_url as parsed_by_services

    parsed = parsed_by_services(url)
    _, keywords = parsed.get_dialect()().create_connect_args(parsed)
    parameters = {name: str(value) for name, value in keywords.items()}
    user, host, port = (parameters.pop(name, "") for name in ("user", "host", "port"))
    database, password = parameters.pop("dbname", ""), parameters.pop("password", "")
    parameters.setdefault("connect_timeout", str(CONNECT_TIMEOUT_S))
    parameters["client_encoding"] = (
        "UTF8"  # Arrow's text is UTF-8, independent of the database's encoding and of PGCLIENTENCODING
    )
    if "," in host or host.startswith("/"):
        # Several hosts, or the folder of a socket, cannot be in the URI's host part.
        parameters |= {"host": host} | ({"port": port} if port else {})
        place = ""
    else:
        place = (f"[{host}]" if ":" in host else quote(host, safe="")) + (f":{port}" if port else "")
    return DatabaseAddress(
        Driver.POSTGRESQL,
        f"postgresql://{quote(user, safe='')}{'@' if user else ''}{place}/{quote(database, safe='')}"
        f"?{urlencode(parameters, quote_via=quote)}",
        f"{place or host}/{database}",
        password,
    )
