"""The settings of the credit service and its worker, from environment variables or flags; `--help` lists them."""

from pathlib import Path
from typing import Annotated, Final, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, PrivateAttr, SecretStr, model_validator
from pydantic_settings import SettingsConfigDict
from redis.connection import parse_url

from rocketmq_broker.world import current_world
from service_runtime.settings.common import (
    DatabaseSettings,
    DatabaseUrl,
    HttpPort,
    HttpThreads,
    ServingDatabaseSettings,
    names_beginning_with,
    refuse_removed,
    secret_of,
    secret_url,
)
from service_runtime.settings.of_services import ServiceSettings, database_at, migration_settings

_REMOVED: Final = {
    "CREDIT_TASK_TIMEOUT_S": "because no message waits for a task",
    "CREDIT_CONSUMER_THREADS": "because no message waits for a task",
    "CREDIT_MAX_RECONSUME_TIMES": "and give the worker CREDIT_MAX_TRIES",
}
"""The settings of earlier versions, and what to do instead."""


def masked_redis(url: str) -> str:
    """Returns a Redis URL for logs, without user, password and parameters."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "<an invalid URL>"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _redis_url(url: SecretStr) -> SecretStr:
    try:
        parse_url(url.get_secret_value())  # type: ignore[no-untyped-call]
    except ValueError:
        raise ValueError("not a Redis URL; use redis://:password@host:port/number or rediss://...") from None
    return url


class CreditDatabaseSettings(DatabaseSettings):
    """The settings of the credit database."""

    model_config = SettingsConfigDict(alias_generator=names_beginning_with("CREDIT"))

    database_url: DatabaseUrl = database_at("data/credits.db")


MigrationSettings = migration_settings(CreditDatabaseSettings, "credit_service")


class LedgerSettings(CreditDatabaseSettings, ServingDatabaseSettings):
    """The settings that the credit service and its worker share.

    Each flag can also be given as an environment variable: --credit-database-url is CREDIT_DATABASE_URL.
    """

    redis_password_file: str = Field(
        "",
        validation_alias="REDIS_PASSWORD_FILE",
        description="file with the password for REDIS_URL, which must not contain one then",
    )
    redis_url: Annotated[SecretStr, AfterValidator(_redis_url)] = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        validation_alias="REDIS_URL",
        description="Redis of Celery's tasks; default: redis://127.0.0.1:6379/0",
    )

    failpoints_folder: Path | None = Field(
        None,
        description="folder in which a demo arms failpoints while the process runs; default: none",
    )

    @model_validator(mode="after")
    def _refuse_removed_settings(self) -> Self:
        """Refuses settings that no longer have an effect."""
        refuse_removed(_REMOVED)
        return self

    @model_validator(mode="after")
    def _add_redis_password(self) -> Self:
        self.redis_url = secret_url(self.redis_url, self.redis_password_file, "REDIS_PASSWORD_FILE")
        return self


class WorkerSettings(LedgerSettings):
    """The credit worker: a Celery worker that writes credits. --check only checks whether this worker is running.

    Each flag can also be given as an environment variable: --credit-database-url is CREDIT_DATABASE_URL.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m credit_service.worker")

    processes: int = Field(2, ge=1, le=64, validation_alias="CREDIT_WORKER_PROCESSES", description="worker processes")
    worker_name: str = Field(
        default_factory=lambda: current_world().host_name(),
        min_length=1,
        validation_alias="CREDIT_WORKER_NAME",
        description="name in the credit service's /healthz and for --check; default: the host name",
    )
    batch_size: int = Field(
        256, ge=1, le=1024, validation_alias="CREDIT_BATCH_SIZE", description="maximum number of orders in a database transaction"
    )
    max_tries: int = Field(
        16,
        ge=1,
        validation_alias="CREDIT_MAX_TRIES",
        description="failures of an order, while others pass, after which its message is parked; outages do not count",
    )
    cancel_refused: bool = Field(False, description="cancel orders that cannot be credited, instead of parking their messages")


class CreditSettings(LedgerSettings, ServiceSettings):
    """The credit service: stores orders in its inbox, has workers credit them, and serves GET /customers/{id}/credit.

    Each flag can also be given as an environment variable: --credit-database-url is CREDIT_DATABASE_URL.
    ROCKETMQ_ACCESS_KEY, ROCKETMQ_SECRET_KEY_FILE, ROCKETMQ_TLS_ENABLE and similar variables (docs/access.md) have no
    flags. `python -m credit_service migrate` migrates the database and exits; `python -m credit_service inbox` lists,
    retries and dismisses parked messages; see their --help.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m credit_service")

    _repair_key: SecretStr = PrivateAttr(SecretStr(""))

    http_port: HttpPort = 8081
    http_threads: HttpThreads = 16
    repair_key_file: str = Field(
        "", description="file with the key for PUT /repairs/{id}; without it the ledger cannot be repaired over HTTP"
    )
    stop_timeout_s: float = Field(
        10.0,
        ge=0,
        le=3_600,
        description="grace period for running requests and batches after SIGTERM",
    )

    @model_validator(mode="after")
    def _read_repair_key(self) -> Self:
        self._repair_key = secret_of(self.repair_key_file, "CREDIT_REPAIR_KEY_FILE")
        return self

    @property
    def repair_key(self) -> SecretStr:
        """The content of the key file; empty if no key file is set."""
        return self._repair_key
