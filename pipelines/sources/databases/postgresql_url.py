"""PostgreSQL's database URLs, read by the services' own library, as addresses for ADBC's driver."""

from typing import Final
from urllib.parse import quote, urlencode

from sqlalchemy.engine import URL

from pipelines.sources.databases.database_address import DatabaseAddress, Driver
from service_runtime.database.database_url import parse_database_url

CONNECT_TIMEOUT_S: Final = 10


def parse_postgresql_url(url: str) -> DatabaseAddress:
    """The address that a PostgreSQL URL means. Raises the services' UnusableUrl, for URLs of other kinds as well."""
    return _address(parse_database_url(url))


def _address(url: URL) -> DatabaseAddress:
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
