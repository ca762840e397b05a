"""The settings of the inventory service, given by environment variables or flags; `--help` lists them."""

from pydantic import Field, SecretStr
from pydantic_settings import SettingsConfigDict

from service_runtime.http.write_guard import WritingSettings
from service_runtime.settings.common import (
    DatabaseSettings,
    DatabaseUrl,
    HttpSettings,
    ServingDatabaseSettings,
    names_beginning_with,
)
from service_runtime.settings.name_servers import NameServerSettings


class InventoryDatabaseSettings(DatabaseSettings):
    """The settings of the inventory database."""

    model_config = SettingsConfigDict(alias_generator=names_beginning_with("INVENTORY"))

    database_url: DatabaseUrl = Field(
        SecretStr("sqlite:///data/inventory.db"),
        description="sqlite:///path or postgresql://user:password@host/name; sqlite:///data/inventory.db unless given",
    )


class MigrationSettings(InventoryDatabaseSettings):
    """Brings the inventory database to the version that this program needs, says what it did, and ends.

    Exit status: 0 when the database has that version, 1 when it could not be migrated, 2 when a setting is wrong.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m inventory_service migrate")


class Settings(InventoryDatabaseSettings, ServingDatabaseSettings, HttpSettings, WritingSettings, NameServerSettings):
    """The inventory service: ships orders from its stock, and tells the order service of shortages.

    Each flag can also be given as an environment variable: --inventory-database-url is INVENTORY_DATABASE_URL.
    ROCKETMQ_ACCESS_KEY, ROCKETMQ_SECRET_KEY_FILE, ROCKETMQ_TLS_ENABLE and their like (docs/operations.md) are variables only.
    `python -m inventory_service migrate` migrates the database and ends; see its own --help.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m inventory_service")

    http_port: int = Field(8082, ge=0, le=65535, description="port to listen on; 0 picks one")
    http_threads: int = Field(16, ge=8, le=512, description="requests that are worked on at once")
    consumer_threads: int = Field(
        4, ge=1, le=256, validation_alias="INVENTORY_CONSUMER_THREADS", description="messages that are worked on at once"
    )
    send_timeout_ms: int = Field(
        3000, gt=0, le=3_600_000, description="how long the broker may take to store the message of a shortage"
    )
