"""A reconciliation as commands run it: Spark is started, the books are compared, and the time is taken."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from pipelines.book_size import are_small
from pipelines.errors import UnusableDatabaseUrl
from pipelines.increments.increment import reconcile_new
from pipelines.increments.state import State
from pipelines.judging.cut_off import CutOff
from pipelines.judging.log_events import Route
from pipelines.reconciliation import Books, Outcome, reconcile
from pipelines.sources.database_address import DatabaseAddress
from pipelines.sources.database_url import parse_database_url
from pipelines.sources.reading import Reading
from pipelines.sources.tables import check_tables
from pipelines.spark.progress import shown_step, shown_tasks
from pipelines.spark.session import spark_session
from service_runtime.settings.secret_files import SecretUnusable, url_with_password


@dataclass(frozen=True, slots=True)
class SparkSettings:
    """Where Spark runs, with how much memory, and where its JVM's words go."""

    master: str | None = None
    memory: str | None = None
    log: Path | None = None


@dataclass(frozen=True, slots=True)
class TimedOutcome:
    """What a reconciliation found, and how long Spark took to start and to compare."""

    outcome: Outcome
    start_s: float
    compare_s: float


def reconciled(
    books: Books,
    cut_off: CutOff,
    output: str,
    settings: SparkSettings,
    progress: Console,
    *,
    state: Path | None = None,
    full: bool = False,
) -> TimedOutcome:
    """Starts Spark and compares: all, or with `state` what is new. Raises what `reconcile` raises, and SparkUnavailable."""
    if state is not None:
        State(state).check()  # nobody waits for Spark to be told that another run is at work
    begun_s = time.monotonic()
    with opened_session(books, settings, progress) as reading:
        started_s = time.monotonic()
        with shown_tasks(progress, reading.spark, "Comparing orders and credits"):
            if state is None:
                outcome = reconcile(reading, books, cut_off, output)
            else:
                outcome = reconcile_new(reading, books, cut_off, output, State(state), full=full)
        return TimedOutcome(outcome, started_s - begun_s, time.monotonic() - started_s)


@contextmanager
def opened_session(books: Books, settings: SparkSettings, progress: Console) -> Iterator[Reading]:
    """Spark for these books, which can be read. Raises UnreadableStore, UnreadableDatabase, SparkUnavailable."""
    for log in books.logs:
        log.check()
    check_tables(books.order_database, books.credit_database)
    is_small = are_small(books.order_database, books.credit_database, books.logs)
    with ExitStack() as stack:
        with shown_step(progress, "Starting Spark"):
            spark = stack.enter_context(spark_session(settings.master, settings.log, is_small=is_small, memory=settings.memory))
        yield Reading(spark, is_small)


def books_of(
    order_database: tuple[str, str],
    credit_database: tuple[str, str],
    route: Route,
    stores: Sequence[Path] | None,
    brokers: Sequence[str] | None = None,
) -> Books:
    """The books that a command line names; a database is a URL and its password's file. Raises UnusableDatabaseUrl."""
    return Books(
        _address_of("ORDER_DATABASE", *order_database),
        _address_of("CREDIT_DATABASE", *credit_database),
        tuple(stores or ()),
        route,
        tuple(brokers or ()),
    )


def _address_of(name: str, url: str, password_file: str) -> DatabaseAddress:
    """A database by its URL; `name` is how settings call it. Raises UnusableDatabaseUrl."""
    try:
        return parse_database_url(url_with_password(url, password_file))
    except SecretUnusable as error:
        raise UnusableDatabaseUrl(f"{name}_PASSWORD_FILE: {error}") from None
    except UnusableDatabaseUrl as error:
        raise UnusableDatabaseUrl(f"{name}_URL: {error}") from None
