"""Alembic's commands, up and down, as the services run them."""

from collections.abc import Callable

from alembic.config import Config
from sqlalchemy import Engine

from service_runtime.database.migration import _alone


def run_migrations(engine: Engine, migrations: str, step: Callable[[Config, str], object], revision: str) -> None:
    """`step` is `alembic.command.upgrade` or `downgrade`; `migrations` as a service names its own."""
    config = Config()
    config.set_main_option("script_location", migrations)
    config.attributes["version_table"] = f"{migrations.partition(':')[0]}_version"
    with _alone(engine) as connection:
        config.attributes["connection"] = connection
        step(config, revision)
