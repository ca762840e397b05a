"""Database URLs, read by the rule that the services go by, as addresses for ADBC's drivers.

sqlite:///data/orders.db             -> file:/current/directory/data/orders.db?mode=ro
postgresql://user:secret@host/orders -> postgresql://user@host/orders?connect_timeout=10   (the secret apart)
"""

from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

from sqlalchemy.engine import URL

from pipelines.errors import UnusableDatabaseUrl
from pipelines.sources.database_address import DatabaseAddress, Driver
from service_runtime.database_url import SQLITE, UnusableUrl
from service_runtime.database_url import parse_database_url as parse_url

CONNECT_TIMEOUT_S: Final = 10


def parse_database_url(url: str) -> DatabaseAddress:
    """The address that a database URL means. Raises UnusableDatabaseUrl; its text does not repeat the URL."""
    try:
        parsed = parse_url(url)
    except UnusableUrl as error:
        raise UnusableDatabaseUrl(str(error)) from None
    return _sqlite(parsed) if parsed.drivername == SQLITE else _postgresql(parsed)


def _sqlite(url: URL) -> DatabaseAddress:
    path = Path(str(url.database)).absolute()
    return DatabaseAddress(Driver.SQLITE, f"file:{quote(str(path))}?mode=ro", str(path))


def _postgresql(url: URL) -> DatabaseAddress:
    """SQLAlchemy's own dialect turns the URL into libpq's keywords, as it does for the services."""
    _, keywords = url.get_dialect()().create_connect_args(url)
    parameters = {name: str(value) for name, value in keywords.items()}
    user, host, port = (parameters.pop(name, "") for name in ("user", "host", "port"))
    database, password = parameters.pop("dbname", ""), parameters.pop("password", "")
    parameters.setdefault("connect_timeout", str(CONNECT_TIMEOUT_S))
    if "," in host or host.startswith("/"):
        # Several hosts, or the folder of a socket: the part before the path has no room for them.
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
