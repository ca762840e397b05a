"""The settings of the order service, given by environment variables or flags; `python -m order_service --help` lists them."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_settings import SettingsConfigDict

from order_service.service_layer.failpoints import parse_failpoints
from service_runtime.http.lanes import THREADS_KEPT_FREE
from service_runtime.http.write_guard import WritingSettings
from service_runtime.settings.common import DatabaseSettings, DatabaseUrl, HttpPort, HttpThreads, names_beginning_with
from service_runtime.settings.of_services import ServiceSettings, database_at, migration_settings


def _failpoints(text: str) -> str:
    parse_failpoints(text)
    return text


class OrderDatabaseSettings(DatabaseSettings):
    """The settings of the order database."""

    model_config = SettingsConfigDict(alias_generator=names_beginning_with("ORDER"))

    database_url: DatabaseUrl = database_at("data/orders.db")


MigrationSettings = migration_settings(OrderDatabaseSettings, "order_service")


class AdoptionSettings(OrderDatabaseSettings):
    """Makes the order database decide for all half messages until now, also for those that another database was to decide.

    For one case only: the database that took the orders is gone for good, and a copy, a backup or a new one takes its place. Each
    transaction that the database does not have is rolled back when the broker asks next: an order that only the lost database had
    is never credited then. Where that database still exists, point ORDER_DATABASE_URL at it instead.
    Exit status: 0 when it is done, 1 when it could not be done, 2 when a setting is wrong.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m order_service adopt-history")

    adoption_reason: str = Field(min_length=1, max_length=200, description="why, for those who read the table adoptions later")


class OrderSettings(OrderDatabaseSettings, ServiceSettings, WritingSettings):
    """The order service: POST /orders places an order in a transaction with the broker.

    Each flag can also be given as an environment variable: --order-database-url is ORDER_DATABASE_URL.
    ROCKETMQ_ACCESS_KEY, ROCKETMQ_SECRET_KEY_FILE, ROCKETMQ_TLS_ENABLE and their like (docs/access.md) are variables only.
    `python -m order_service migrate` migrates the database and ends; see its own --help. So does `adopt-history`, which says that
    a copy of the database is from now on the truth.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m order_service")

    send_timeout_ms: int = Field(
        3000,
        gt=0,
        le=3_600_000,
        description="how long the broker may take to store the half message",
    )
    http_port: HttpPort = 8080
    http_threads: HttpThreads = 48
    placing_max: int | None = Field(
        None,
        ge=1,
        description="orders placed at the same time, the next one is answered 503; two thirds of the threads unless given",
    )
    order_limit_cents: int = Field(
        1_000_000,
        ge=0,
        validation_alias="ORDER_LIMIT_CENTS",
        description="an order above it fails in its local transaction and is rolled back",
    )
    payment_deadline_s: float = Field(
        600.0,
        gt=0,
        le=30 * 86_400,
        description='how long an order with payment "later" waits; must end before the broker\'s patience: docs/services.md',
    )
    failpoints: Annotated[str, AfterValidator(_failpoints)] = Field(
        "", validation_alias="FAILPOINTS", description="where the process fails on purpose, e.g. exit-after-local-commit:every=25"
    )
    failpoints_folder: Path | None = Field(
        None,
        description="a folder in which a demo arms failpoints while the process runs; none unless given",
    )

    @property
    def placed_at_once(self) -> int:
        """The number of orders placed at the same time."""
        return self.placing_max or min(self.http_threads * 2 // 3, self._most_placed_at_once)

    @property
    def _most_placed_at_once(self) -> int:
        return self.http_threads - THREADS_KEPT_FREE

    @model_validator(mode="after")
    def _leave_threads_for_others(self) -> Self:
        if self.placed_at_once > self._most_placed_at_once:
            raise ValueError(
                f"ORDER_PLACING_MAX: {self.placing_max} of {self.http_threads} threads (ORDER_HTTP_THREADS) leave too few for "
                f"other requests: {self._most_placed_at_once} are possible"
            )
        return self
