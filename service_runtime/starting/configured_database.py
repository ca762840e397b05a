"""Opens or migrates the database that a service's settings specify."""

from sqlalchemy import Engine

from service_runtime.database.database_url import masked
from service_runtime.database.opening import migrate_database, open_database
from service_runtime.settings.common import DatabaseSettings, ServingDatabaseSettings


def open_to_serve(settings: ServingDatabaseSettings, migrations: str) -> Engine:
    """Opens the database; migrates it first if the setting `migrate_on_start` is on. Raises DatabaseUnusable."""
    return open_migrated(settings, migrations, is_migrated=settings.migrate_on_start)


def open_migrated(settings: DatabaseSettings, migrations: str, *, is_migrated: bool = False) -> Engine:
    """Opens a database with this version's tables. Migrates it first only if `is_migrated`. Raises DatabaseUnusable."""
    return open_database(
        settings.database_url.get_secret_value(),
        migrations=migrations,
        start_timeout_s=settings.database_start_timeout_s,
        lock_wait_s=settings.migration_lock_wait_s,
        is_migrated=is_migrated,
    )


def migrate_and_leave(settings: DatabaseSettings, migrations: str) -> None:
    """Migrates the tables to this version and prints the result. Raises DatabaseUnusable."""
    url = settings.database_url.get_secret_value()
    done = migrate_database(
        url,
        migrations=migrations,
        start_timeout_s=settings.database_start_timeout_s,
        lock_wait_s=settings.migration_lock_wait_s,
    )
    print(f"database {masked(url)}: {done}", flush=True)
