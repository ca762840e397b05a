"""Opens or migrates a service's database. Waits until the database is available, and for the locks of a migration."""

import logging
from collections.abc import Callable
from typing import Final, TypeVar

import stamina
from sqlalchemy import Engine
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from service_runtime.database.database_url import masked
from service_runtime.database.engine import DatabaseUnusable, create_database_engine
from service_runtime.database.migration import LocksHeld, Migrated, check_revision, migrate

LOCK_WAIT_S: Final = 600.0

logger = logging.getLogger(__name__)

T = TypeVar("T")


def open_database(
    url: str, *, migrations: str, start_timeout_s: float, lock_wait_s: float = LOCK_WAIT_S, is_migrated: bool = True
) -> Engine:
    """Waits for the database, migrates it, and returns its engine. Raises DatabaseUnusable.

    `migrations` is Alembic's location, such as "order_service:migrations". Without `is_migrated` nothing is changed, and tables
    of another version are an error. `start_timeout_s` limits the wait for the database. `lock_wait_s` limits the wait for the
    locks of a migration.
    """
    engine = create_database_engine(url)
    work = migrate if is_migrated else check_revision
    try:
        _patiently(lambda: work(engine, migrations), url, start_timeout_s, lock_wait_s)
    except BaseException:
        engine.dispose()
        raise
    return engine


def migrate_database(url: str, *, migrations: str, start_timeout_s: float, lock_wait_s: float = LOCK_WAIT_S) -> Migrated:
    """Migrates the database and returns the revisions. The arguments and errors are those of `open_database`."""
    engine = create_database_engine(url)
    try:
        return _patiently(lambda: migrate(engine, migrations), url, start_timeout_s, lock_wait_s)
    finally:
        engine.dispose()


def _patiently(work: Callable[[], T], url: str, start_timeout_s: float, lock_wait_s: float) -> T:
    """Runs `work` and returns its result. Retries it while the database is unavailable or other sessions hold its locks."""
    shown = masked(url)
    try:
        return _again_on(
            LocksHeld,
            lambda: _again_on(OperationalError, work, start_timeout_s, f"the database {shown} does not answer yet"),
            lock_wait_s,
            f"the migration of {shown} waits for others",
        )
    except LocksHeld as error:
        reason = f"cannot migrate the database {shown}, which others have locked for {lock_wait_s:g} s: {error}"
    except OperationalError as error:
        reason = f"cannot use the database {shown} after {start_timeout_s:g} s: {_first_line(error)}"
    except SQLAlchemyError as error:
        reason = f"cannot use the database {shown}: {_first_line(error)}"
    raise DatabaseUnusable(reason)


def _again_on(error_kind: type[Exception], work: Callable[[], T], timeout_s: float, announcement: str) -> T:
    for attempt in stamina.retry_context(on=error_kind, attempts=None, timeout=timeout_s, wait_max=3.0):
        with attempt:
            try:
                return work()
            except error_kind as error:
                if attempt.num == 1:
                    logger.warning("%s, retrying for %g s: %s", announcement, timeout_s, _first_line(error))
                raise
    raise AssertionError("unreachable: stamina returns or raises")


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
