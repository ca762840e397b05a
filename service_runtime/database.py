"""Opens a service's database: waits for it at start, and migrates it."""

import logging
import zlib

import stamina
from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, func, select
from sqlalchemy.exc import OperationalError

from service_runtime.database_url import masked
from service_runtime.engine import DatabaseUnusable, create_database_engine

logger = logging.getLogger(__name__)


def open_database(url: str, *, migrations: str, start_timeout_s: float) -> Engine:
    """A database that answers and has the tables of this version. Raises DatabaseUnusable, in one line.

    `migrations` is where Alembic finds the service's migrations: "order_service:migrations".
    """
    engine = create_database_engine(url)
    try:
        for attempt in stamina.retry_context(on=OperationalError, attempts=None, timeout=start_timeout_s, wait_max=2.0):
            with attempt:
                migrate(engine, migrations)
    except OperationalError as error:
        engine.dispose()
        reason = str(error.orig).strip().splitlines()[0]
        raise DatabaseUnusable(f"cannot use the database {masked(url)} after {start_timeout_s:g} s: {reason}") from None
    return engine


def migrate(engine: Engine, migrations: str) -> None:
    """Brings the tables to this version, in one transaction; processes that start at once do it one after the other."""
    config = Config()
    config.set_main_option("script_location", migrations)
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(zlib.crc32(migrations.encode()))))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
