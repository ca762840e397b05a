"""Runs Alembic's upgrade and downgrade as the services do."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text

from service_runtime.database.engine import create_database_engine
from service_runtime.database.migration import _alone


@contextmanager
def first_version(url: str, migrations: str, rows: Sequence[str], *, counter: str) -> Iterator[Engine]:
    """Creates a database at version 0001, executes the statements `rows`, and yields the engine.

    On PostgreSQL, sets the sequence `counter` to 9, the number of the last row.
    """
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
    """Runs `step`, which is `alembic.command.upgrade` or `downgrade`. `migrations` is a service's own constant."""
    config = Config()
    config.set_main_option("script_location", migrations)
    config.attributes["version_table"] = f"{migrations.partition(':')[0]}_version"
    with _alone(engine) as connection:
        config.attributes["connection"] = connection
        step(config, revision)
