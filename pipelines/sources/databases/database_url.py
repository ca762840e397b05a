"""Database URLs, read by the rule that the services go by, as addresses for ADBC's drivers.

sqlite:///data/orders.db             -> file:/current/directory/data/orders.db?mode=ro
postgresql://user:secret@host/orders -> postgresql://user@host/orders?connect_timeout=10   (the secret apart)
"""

from pathlib import Path
from urllib.parse import quote

from pipelines.errors import UnusableDatabaseUrl
from pipelines.sources.databases.database_address import DatabaseAddress, Driver
from service_runtime.database.sqlite_url import UnusableUrl, sqlite_path


def parse_database_url(url: str) -> DatabaseAddress:
    """The address that a database URL means. Raises UnusableDatabaseUrl; its text does not repeat the URL."""
    try:
        path = sqlite_path(url)
        if path is not None:
            return _sqlite(Path(path).absolute())
        # Here, because it brings SQLAlchemy along, which books in SQLite need not wait for.
        from pipelines.sources.databases.postgresql_url import parse_postgresql_url

        return parse_postgresql_url(url)
    except UnusableUrl as error:
        raise UnusableDatabaseUrl(str(error)) from None


def _sqlite(path: Path) -> DatabaseAddress:
    return DatabaseAddress(Driver.SQLITE, f"file:{quote(str(path))}?mode=ro", str(path))
