"""The settings of the order service, from environment variables or flags; `python -m order_service --help` lists them."""

from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator
from pydantic_settings import SettingsConfigDict

from order_service.adapters.failpoints import parse_failpoints
from service_runtime.http.requests import THREADS_KEPT_FREE
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
    """Accept the order database for all half messages until now, including those that another database should have decided.

    Use it only if the database that took the orders is lost, and a copy, a backup or a new one replaces it. Transactions that the
    database does not have are rolled back at the next check-back: an order that only the lost database had is never credited. If
    that database still exists, point ORDER_DATABASE_URL to it instead.
    Exit status: 0 on success, 1 on failure, 2 for an invalid setting.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m order_service adopt-history")

    adoption_reason: str = Field(min_length=1, max_length=200, description="the reason, stored in the table adoptions")


class OrderSettings(OrderDatabaseSettings, ServiceSettings, WritingSettings):
    """The order service: POST /orders places an order in a transaction with the broker.

    Each flag can also be given as an environment variable: --order-database-url is ORDER_DATABASE_URL.
    ROCKETMQ_ACCESS_KEY, ROCKETMQ_SECRET_KEY_FILE, ROCKETMQ_TLS_ENABLE and similar variables (docs/access.md) have no flags.
    `python -m order_service migrate` migrates the database and exits; see its --help. `python -m order_service adopt-history`
    accepts a copy of the database that replaces a lost one; see its --help.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m order_service")

    send_timeout_ms: int = Field(
        3000,
        gt=0,
        le=3_600_000,
        description="time-out for storing the half message at the broker",
    )
    http_port: HttpPort = 8080
    http_threads: HttpThreads = 48
    placing_max: int | None = Field(
        None,
        ge=1,
        description="maximum number of orders placed at the same time; more are answered 503; default: two thirds of the threads",
    )
    order_limit_cents: int = Field(
        1_000_000,
        ge=0,
        validation_alias="ORDER_LIMIT_CENTS",
        description="orders with a higher total fail in their local transaction and are rolled back",
    )
    payment_deadline_s: float = Field(
        600.0,
        gt=0,
        le=30 * 86_400,
        description='payment deadline of orders with payment "later"; the broker must check back for longer: docs/services.md',
    )
    failpoints: Annotated[str, AfterValidator(_failpoints)] = Field(
        "", validation_alias="FAILPOINTS", description="failpoint for tests and demos, e.g. exit-after-local-commit:every=25"
    )
    failpoints_folder: Path | None = Field(
        None,
        description="folder in which a demo arms failpoints while the process runs; default: none",
    )

    @property
    def placed_at_once(self) -> int:
        """The maximum number of orders placed at the same time."""
        return self.placing_max or min(self.http_threads * 2 // 3, self._max_placed_at_once)

    @property
    def _max_placed_at_once(self) -> int:
        return self.http_threads - THREADS_KEPT_FREE

    @model_validator(mode="after")
    def _leave_threads_for_others(self) -> Self:
        if self.placed_at_once > self._max_placed_at_once:
            raise ValueError(
                f"ORDER_PLACING_MAX must be at most {self._max_placed_at_once} with ORDER_HTTP_THREADS={self.http_threads}, "
                f"not {self.placing_max}: other requests need threads too"
            )
        return self
