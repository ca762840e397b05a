"""Alembic's commands, up and down, as the services run them."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text

from service_runtime.database.engine import create_database_engine
from service_runtime.database.migration import _alone


@contextmanager
def first_version(url: str, migrations: str, rows: Sequence[str], *, counter: str) -> Iterator[Engine]:
    """A database as version 0001 left it, with rows by INSERT; the last one's number is 9. `counter` is PostgreSQL's sequence."""
    engine = create_database_engine(url)
    run_migrations(engine, migrations, command.upgrade, "0001")
    with engine.begin() as connection:
        for row in rows:
            connection.execute(text(row))
        if engine.dialect.name == "postgresql":
            connection.execute(text(f"SELECT setval('{counter}', 9)"))
    yield engine
    engine.dispose()


def run_migrations(engine: Engine, migrations: str, step: Callable[[Config, str], object], revision: str) -> None:
    """`step` is `alembic.command.upgrade` or `downgrade`; `migrations` as a service names its own."""
    config = Config()
    config.set_main_option("script_location", migrations)
    config.attributes["version_table"] = f"{migrations.partition(':')[0]}_version"
    with _alone(engine) as connection:
        config.attributes["connection"] = connection
        step(config, revision)
