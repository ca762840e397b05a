"""The options of the commands, from the command line and the environment, in groups."""

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
from pipelines.judging.route import Route
from pipelines.judging.totals import Tolerance
from pipelines.reconciliation import Books
from pipelines.repair.audit import known_repairs
from pipelines.sources.databases.database_address import DatabaseAddress
from pipelines.sources.databases.database_url import parse_database_url
from service_runtime.settings.secret_files import SecretUnusable, url_with_password

Topic = Annotated[str, typer.Option(help="the topic of the orders")]
Master = Annotated[str | None, typer.Option(help="Spark's master; default: spark-submit's, or local[*]")]
Grace = Annotated[int, typer.Option(min=0, help="grace period in seconds: younger orders are not reported as incomplete")]
Output = Annotated[str, typer.Option(help="folder of the Parquet output")]
Audits = Annotated[
    list[Path] | None,
    typer.Option(help="audit file of repair --apply: only repairs in these files are accepted; may be repeated"),
]
SparkLog = Annotated[Path | None, typer.Option(help="file for the output of Spark's JVM")]


@dataclass(frozen=True, slots=True)
class BooksOptions:
    """The options that specify the two databases and the brokers' commit logs."""

    order_database_url: Annotated[
        str, typer.Option(envvar="ORDER_DATABASE_URL", show_envvar=True, help="database URL in the services' format")
    ] = "sqlite:///data/orders.db"
    credit_database_url: Annotated[
        str, typer.Option(envvar="CREDIT_DATABASE_URL", show_envvar=True, help="database URL in the services' format")
    ] = "sqlite:///data/credits.db"
    order_database_password_file: Annotated[
        str, typer.Option(envvar="ORDER_DATABASE_PASSWORD_FILE", show_envvar=True, help="file with the order database's password")
    ] = ""
    credit_database_password_file: Annotated[
        str,
        typer.Option(envvar="CREDIT_DATABASE_PASSWORD_FILE", show_envvar=True, help="file with the credit database's password"),
    ] = ""
    store: Annotated[
        list[Path] | None, typer.Option(help="a broker's store directory: compares messages too; once for each broker")
    ] = None
    broker: Annotated[
        list[str] | None, typer.Option(help="HOST:PORT of a broker whose messages are pulled, if its store is not accessible")
    ] = None
    topic: Topic = "orders"
    consumer_group: Annotated[str, typer.Option(help="the group that writes the credits")] = "credit_service"

    def books(self, audits: Sequence[Path] | None = None) -> Books:
        """Returns the sources to compare. If `audits` are given, only the repairs in these files are accepted.

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
    """Returns a database's address. `name` is its prefix in settings. Raises UnusableDatabaseUrl."""
    try:
        return parse_database_url(url_with_password(url, password_file))
    except SecretUnusable as error:
        raise UnusableDatabaseUrl(f"{name}_PASSWORD_FILE: {error}") from None
    except UnusableDatabaseUrl as error:
        raise UnusableDatabaseUrl(f"{name}_URL: {error}") from None


@dataclass(frozen=True, slots=True)
class SparkOptions:
    """The options for Spark's master, memory and JVM log."""

    master: Master = None
    memory: Annotated[str | None, typer.Option(help="heap of Spark's JVM on this machine, such as 4g")] = None
    spark_log: SparkLog = None


class Engine(StrEnum):
    """The engine that runs the rules of a reconciliation."""

    SPARK = "spark"
    SQLITE = "sqlite"


@dataclass(frozen=True, slots=True)
class PatienceOptions:
    """The options for the time that an order may wait for its credit."""

    grace_seconds: Grace = GRACE_SECONDS
    overdue_seconds: Annotated[
        int, typer.Option(min=0, help="seconds after which an order that is still on its way is reported")
    ] = OVERDUE_SECONDS

    def cut_off(self, as_of_ms: int) -> CutOff:
        """Returns the cut-off of a reconciliation that begins at `as_of_ms`."""
        return CutOff(as_of_ms, self.grace_seconds, self.overdue_seconds)


@dataclass(frozen=True, slots=True)
class ToleranceOptions:
    """The options that set which classes of findings count as failures."""

    allow: Annotated[list[Finding] | None, typer.Option(help="class of findings that must not fail; may be repeated")] = None
    fail_on: Annotated[list[Finding] | None, typer.Option(help="healthy class of findings that must fail; may be repeated")] = (
        None
    )

    def tolerance(self) -> Tolerance:
        """Returns the tolerance, which decides which classes of findings count as failures."""
        return Tolerance(frozenset(self.allow or ()), frozenset(self.fail_on or ()))


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """The options for outputs besides the table on the screen."""

    output: Output = "data/reconciliation"
    show_output: Annotated[bool, typer.Option("--show-output/--hide-output", help="print the folder of the Parquet output")] = (
        True
    )
    report: Annotated[Path | None, typer.Option(help="write an HTML report to this file")] = None
    breaks: Annotated[Path | None, typer.Option(help="track breaks in this file from run to run")] = None


@dataclass(frozen=True, slots=True)
class IncrementOptions:
    """The options for reading all rows or only new ones."""

    state: Annotated[
        Path | None, typer.Option(help="folder for the state: read only rows since the last run, and open orders")
    ] = None
    full: Annotated[bool, typer.Option("--full", help="with --state: read everything, and create the state again")] = False


EVERYTHING: Final = IncrementOptions()


@dataclass(frozen=True, slots=True)
class RepairOptions:
    """The options for the servers and the audit file of a repair."""

    namesrv_addr: Annotated[
        str | None, typer.Option(envvar="NAMESRV_ADDR", show_envvar=True, help="HOST:PORT;HOST:PORT of name servers")
    ] = None
    credit_service_url: Annotated[str, typer.Option(envvar="CREDIT_SERVICE_URL", show_envvar=True, help="the credit service")] = (
        "http://127.0.0.1:8081"
    )
    repair_key_file: Annotated[
        str,
        typer.Option(envvar="CREDIT_REPAIR_KEY_FILE", show_envvar=True, help="file with the repair key of the credit service"),
    ] = ""
    audit: Annotated[Path | None, typer.Option(help="audit file; default: PLAN.audit.jsonl")] = None
