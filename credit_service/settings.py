"""The settings of the credit service and its worker, given by environment variables or flags; `--help` lists them."""

from pathlib import Path
from typing import Annotated, Self
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
)
from service_runtime.settings.of_services import ServiceSettings, database_at, migration_settings
from service_runtime.settings.secret_settings import secret_of, secret_url


def masked_redis(url: str) -> str:
    """Returns a Redis URL for logs, without user, password and parameters."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "<a URL that cannot be read>"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}"


def _redis_url(url: SecretStr) -> SecretStr:
    try:
        parse_url(url.get_secret_value())  # type: ignore[no-untyped-call]
    except ValueError:
        raise ValueError("cannot be used: redis://:password@host:port/number or rediss://... is expected") from None
    return url


class CreditDatabaseSettings(DatabaseSettings):
    """The settings of the credit database."""

    model_config = SettingsConfigDict(alias_generator=names_beginning_with("CREDIT"))

    database_url: DatabaseUrl = database_at("data/credits.db")


MigrationSettings = migration_settings(CreditDatabaseSettings, "credit_service")


class LedgerSettings(CreditDatabaseSettings, ServingDatabaseSettings):
    """The settings of both consumer and worker.

    Each flag can also be given as an environment variable: --credit-database-url is CREDIT_DATABASE_URL.
    """

    redis_password_file: str = Field(
        "",
        validation_alias="REDIS_PASSWORD_FILE",
        description="file that holds the password for REDIS_URL, which holds none then",
    )
    redis_url: Annotated[SecretStr, AfterValidator(_redis_url)] = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        validation_alias="REDIS_URL",
        description="where Celery keeps its tasks; redis://127.0.0.1:6379/0 unless given",
    )

    failpoints_folder: Path | None = Field(
        None,
        description="a folder in which a demo arms failpoints while the process runs; none unless given",
    )

    @model_validator(mode="after")
    def _add_redis_password(self) -> Self:
        self.redis_url = secret_url(self.redis_url, self.redis_password_file, "REDIS_PASSWORD_FILE")
        return self


class WorkerSettings(LedgerSettings):
    """The credit worker: a Celery worker that writes credits. With --check: only ask whether the worker of this name lives.

    Each flag can also be given as an environment variable: --credit-database-url is CREDIT_DATABASE_URL.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m credit_service.worker")

    processes: int = Field(2, ge=1, le=64, validation_alias="CREDIT_WORKER_PROCESSES", description="worker processes")
    worker_name: str = Field(
        default_factory=lambda: current_world().host_name(),
        min_length=1,
        validation_alias="CREDIT_WORKER_NAME",
        description="its name in the credit service's /healthz and for --check; the machine's name unless given",
    )


class CreditSettings(LedgerSettings, ServiceSettings):
    """The credit service: consumes orders, hands them to Celery workers, and answers GET /customers/{id}/credit.

    Each flag can also be given as an environment variable: --credit-database-url is CREDIT_DATABASE_URL.
    ROCKETMQ_ACCESS_KEY, ROCKETMQ_SECRET_KEY_FILE, ROCKETMQ_TLS_ENABLE and their like (docs/access.md) are variables only.
    `python -m credit_service migrate` migrates the database and ends; see its own --help.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m credit_service")

    _repair_key: SecretStr = PrivateAttr(SecretStr(""))

    http_port: HttpPort = 8081
    http_threads: HttpThreads = 16
    consumer_threads: int = Field(
        8, ge=1, le=256, validation_alias="CREDIT_CONSUMER_THREADS", description="batches that wait for their task at once"
    )
    batch_size: int = Field(32, ge=1, le=1024, validation_alias="CREDIT_BATCH_SIZE", description="orders in one task at most")
    task_timeout_s: float = Field(
        10.0,
        gt=0,
        le=3_600,
        validation_alias="CREDIT_TASK_TIMEOUT_S",
        description="how long a batch waits for the workers; then it is held, and its task is sent again if it got lost",
    )
    repair_key_file: str = Field(
        "", description="file that holds the key for PUT /repairs/{id}; without it nobody may repair the ledger over HTTP"
    )
    stop_timeout_s: float = Field(
        10.0,
        ge=0,
        le=3_600,
        description="how long requests and batches that run may take to end after SIGTERM",
    )
    cancel_refused: bool = Field(
        False,
        description="have an order cancelled that cannot be credited, instead of leaving its message with the dead letters",
    )
    max_reconsume_times: int = Field(
        16,
        ge=0,
        validation_alias="CREDIT_MAX_RECONSUME_TIMES",
        description="redeliveries of an order whose task fails, before it goes to the dead-letter topic; an outage uses none",
    )

    @model_validator(mode="after")
    def _read_repair_key(self) -> Self:
        self._repair_key = secret_of(self.repair_key_file, "CREDIT_REPAIR_KEY_FILE")
        return self

    @property
    def repair_key(self) -> SecretStr:
        """The content of the key file; empty without a file."""
        return self._repair_key
