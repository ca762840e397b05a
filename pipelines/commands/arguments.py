"""The commands' arguments from the command line and the environment, in groups of related options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer

from pipelines.errors import UnusableDatabaseUrl
from pipelines.judging.classes import Finding
from pipelines.judging.cut_off import GRACE_SECONDS, OVERDUE_SECONDS, CutOff
from pipelines.judging.log_events import Route
from pipelines.judging.totals import Tolerance
from pipelines.reconciliation import Books
from pipelines.repair.audit import known_repairs
from pipelines.sources.databases.database_address import DatabaseAddress
from pipelines.sources.databases.database_url import parse_database_url
from service_runtime.settings.secret_files import SecretUnusable, url_with_password

Topic = Annotated[str, typer.Option(help="the topic that orders are announced on")]
Master = Annotated[str | None, typer.Option(help="Spark's master: local[*] unless spark-submit says otherwise")]
Grace = Annotated[int, typer.Option(min=0, help="seconds during which a new order may still lack its credit")]
Output = Annotated[str, typer.Option(help="where the Parquet goes")]
Audits = Annotated[
    list[Path] | None,
    typer.Option(help="a file that repair --apply wrote: believe the repairs in it, and no other; may be repeated"),
]
SparkLog = Annotated[Path | None, typer.Option(help="keep what Spark's JVM prints in this file")]


@dataclass(frozen=True, slots=True)
class BooksOptions:
    """The options that name the compared books."""

    order_database_url: Annotated[
        str, typer.Option(envvar="ORDER_DATABASE_URL", show_envvar=True, help="database URL, as the services take it")
    ] = "sqlite:///data/orders.db"
    credit_database_url: Annotated[
        str, typer.Option(envvar="CREDIT_DATABASE_URL", show_envvar=True, help="database URL, as the services take it")
    ] = "sqlite:///data/credits.db"
    order_database_password_file: Annotated[
        str, typer.Option(envvar="ORDER_DATABASE_PASSWORD_FILE", show_envvar=True, help="file with the order database's password")
    ] = ""
    credit_database_password_file: Annotated[
        str,
        typer.Option(envvar="CREDIT_DATABASE_PASSWORD_FILE", show_envvar=True, help="file with the credit database's password"),
    ] = ""
    store: Annotated[
        list[Path] | None, typer.Option(help="a broker's store directory: compare messages, too; once for each broker")
    ] = None
    broker: Annotated[
        list[str] | None, typer.Option(help="HOST:PORT of a broker whose messages are pulled: where no path leads to its store")
    ] = None
    topic: Topic = "orders"
    consumer_group: Annotated[str, typer.Option(help="the group that writes the credits")] = "credit_service"

    def books(self, audits: Sequence[Path] | None = None) -> Books:
        """Returns the books with the databases' addresses. The repairs in `audits` are believed; all without any file.

        Raises UnusableDatabaseUrl.
        """
        return Books(
            _address("ORDER_DATABASE", self.order_database_url, self.order_database_password_file),
            _address("CREDIT_DATABASE", self.credit_database_url, self.credit_database_password_file),
            tuple(self.store or ()),
            Route(self.topic, self.consumer_group),
            tuple(self.broker or ()),
            partial(known_repairs, audits) if audits else None,
        )


def _address(name: str, url: str, password_file: str) -> DatabaseAddress:
    """Returns a database's address; `name` is its name in settings. Raises UnusableDatabaseUrl."""
    try:
        return parse_database_url(url_with_password(url, password_file))
    except SecretUnusable as error:
        raise UnusableDatabaseUrl(f"{name}_PASSWORD_FILE: {error}") from None
    except UnusableDatabaseUrl as error:
        raise UnusableDatabaseUrl(f"{name}_URL: {error}") from None


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The options for Spark's master, its memory, and the log of its JVM."""

    master: Master = None
    memory: Annotated[str | None, typer.Option(help="heap of Spark's JVM on this machine, such as 4g")] = None
    spark_log: SparkLog = None


class Engine(StrEnum):
    """What runs the rules of a reconciliation."""

    SPARK = "spark"
    SQLITE = "sqlite"


@dataclass(frozen=True, slots=True)
class PatienceOptions:
    """The options for an order's wait for its credit."""

    grace_seconds: Grace = GRACE_SECONDS
    overdue_seconds: Annotated[
        int, typer.Option(min=0, help="seconds after which what is on its way, by the commit log, fails")
    ] = OVERDUE_SECONDS

    def cut_off(self, as_of_ms: int) -> CutOff:
        """Returns the moment of judgement, for a reconciliation that begins at `as_of_ms`."""
        return CutOff(as_of_ms, self.grace_seconds, self.overdue_seconds)


@dataclass(frozen=True, slots=True)
class ToleranceOptions:
    """The options that change the failing classes."""

    allow: Annotated[list[Finding] | None, typer.Option(help="a class of finding that shall not fail; may be repeated")] = None
    fail_on: Annotated[
        list[Finding] | None, typer.Option(help="a healthy class that shall fail all the same; may be repeated")
    ] = None

    def tolerance(self) -> Tolerance:
        """Returns the failing classes."""
        return Tolerance(frozenset(self.allow or ()), frozenset(self.fail_on or ()))


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """The options for the places of results, besides the table on the screen."""

    output: Output = "data/reconciliation"
    show_output: Annotated[bool, typer.Option("--show-output/--hide-output", help="whether to say where the Parquet is")] = True
    report: Annotated[Path | None, typer.Option(help="write a page to look at into this HTML file")] = None
    breaks: Annotated[Path | None, typer.Option(help="keep account of breaks in this file, from run to run")] = None


@dataclass(frozen=True, slots=True)
class IncrementOptions:
    """The options for reading everything, or only new rows."""

    state: Annotated[
        Path | None, typer.Option(help="read only what is new since the last run with this folder, and what was open")
    ] = None
    full: Annotated[bool, typer.Option("--full", help="with --state: read everything, and begin the folder anew")] = False


EVERYTHING: Final = IncrementOptions()


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """The options with the servers of a repair, and its audit file."""

    namesrv_addr: Annotated[
        str | None, typer.Option(envvar="NAMESRV_ADDR", show_envvar=True, help="HOST:PORT;HOST:PORT of name servers")
    ] = None
    credit_service_url: Annotated[str, typer.Option(envvar="CREDIT_SERVICE_URL", show_envvar=True, help="the credit service")] = (
        "http://127.0.0.1:8081"
    )
    repair_key_file: Annotated[
        str,
        typer.Option(
            envvar="CREDIT_REPAIR_KEY_FILE", show_envvar=True, help="file with the key that the credit service asks for"
        ),
    ] = ""
    audit: Annotated[Path | None, typer.Option(help="where each attempt is noted; PLAN.audit.jsonl unless given")] = None
