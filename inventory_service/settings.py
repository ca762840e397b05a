"""The settings of the inventory service, from environment variables or flags; `--help` lists them."""

from typing import Final, Self

from pydantic import Field, model_validator
from pydantic_settings import SettingsConfigDict

from service_runtime.http.write_guard import WritingSettings
from service_runtime.settings.common import (
    DatabaseSettings,
    DatabaseUrl,
    HttpPort,
    HttpThreads,
    names_beginning_with,
    refuse_removed,
)
from service_runtime.settings.of_services import ServiceSettings, database_at, migration_settings

_REMOVED: Final = {"INVENTORY_CONSUMER_THREADS": "because messages wait in the inbox and not in threads"}
"""The settings of earlier versions, and what to do instead."""


class InventoryDatabaseSettings(DatabaseSettings):
    """The settings of the inventory database."""

    model_config = SettingsConfigDict(alias_generator=names_beginning_with("INVENTORY"))

    database_url: DatabaseUrl = database_at("data/inventory.db")


MigrationSettings = migration_settings(InventoryDatabaseSettings, "inventory_service")


class InventorySettings(InventoryDatabaseSettings, ServiceSettings, WritingSettings):
    """The inventory service: ships orders from stock, and reports shortages to the order service.

    Each flag can also be given as an environment variable: --inventory-database-url is INVENTORY_DATABASE_URL.
    ROCKETMQ_ACCESS_KEY, ROCKETMQ_SECRET_KEY_FILE, ROCKETMQ_TLS_ENABLE and similar settings (docs/access.md) are environment
    variables only. `python -m inventory_service migrate` migrates the database and exits; `python -m inventory_service inbox`
    lists, retries and dismisses parked messages; see their --help.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m inventory_service")

    http_port: HttpPort = 8082
    http_threads: HttpThreads = 16
    max_tries: int = Field(
        16,
        ge=1,
        validation_alias="INVENTORY_MAX_TRIES",
        description="failures of a message, while others pass, after which it is parked; outages do not count",
    )
    send_timeout_ms: int = Field(
        3000, gt=0, le=3_600_000, description="time-out for storing the message about a shortage at the broker"
    )

    @model_validator(mode="after")
    def _refuse_removed_settings(self) -> Self:
        """Refuses settings that no longer have an effect."""
        refuse_removed(_REMOVED)
        return self
