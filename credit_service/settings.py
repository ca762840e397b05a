"""What the credit service can be told, by environment variable or by flag; `--help` lists it."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class LedgerSettings(BaseSettings):
    """What consumer and worker both need.

    Each flag can also be given as an environment variable: --credit-database-url is CREDIT_DATABASE_URL.
    """

    model_config = SettingsConfigDict(cli_kebab_case=True, extra="ignore", populate_by_name=True)

    database_url: SecretStr = Field(
        SecretStr("sqlite:///data/credits.db"),
        validation_alias="CREDIT_DATABASE_URL",
        description="sqlite:///path or postgresql+psycopg://user:password@host/name; sqlite:///data/credits.db unless given",
    )
    database_start_timeout_s: float = Field(
        30.0, gt=0, validation_alias="CREDIT_DATABASE_START_TIMEOUT_S", description="how long to wait for the database at start"
    )
    redis_url: SecretStr = Field(
        SecretStr("redis://127.0.0.1:6379/0"),
        validation_alias="REDIS_URL",
        description="where Celery keeps its tasks; redis://127.0.0.1:6379/0 unless given",
    )


class WorkerSettings(LedgerSettings):
    """The credit worker: a Celery worker that writes credits.

    Each flag can also be given as an environment variable: --credit-database-url is CREDIT_DATABASE_URL.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m credit_service.worker")

    processes: int = Field(2, ge=1, le=64, validation_alias="CREDIT_WORKER_PROCESSES", description="worker processes")


class ServiceSettings(LedgerSettings):
    """The credit service: consumes orders, hands them to Celery workers, and answers GET /customers/{id}/credit.

    Each flag can also be given as an environment variable: --credit-database-url is CREDIT_DATABASE_URL.
    ROCKETMQ_ACCESS_KEY, ROCKETMQ_SECRET_KEY_FILE, ROCKETMQ_TLS_ENABLE and their like (docs/operations.md) are variables only.
    """

    model_config = SettingsConfigDict(cli_prog_name="python -m credit_service")

    namesrv_addr: str = Field(
        "127.0.0.1:9876", min_length=1, validation_alias="NAMESRV_ADDR", description="name servers, host:port;host:port"
    )
    http_host: str = Field("127.0.0.1", validation_alias="CREDIT_HTTP_HOST", description="address to listen on")
    http_port: int = Field(
        8081, ge=0, le=65535, validation_alias="CREDIT_HTTP_PORT", description="port to listen on; 0 picks one"
    )
    http_threads: int = Field(8, ge=1, le=512, validation_alias="CREDIT_HTTP_THREADS", description="requests served at once")
    consumer_threads: int = Field(
        8, ge=1, le=256, validation_alias="CREDIT_CONSUMER_THREADS", description="batches that wait for their task at once"
    )
    batch_size: int = Field(32, ge=1, le=1024, validation_alias="CREDIT_BATCH_SIZE", description="orders in one task at most")
    task_timeout_s: float = Field(
        10.0,
        gt=0,
        validation_alias="CREDIT_TASK_TIMEOUT_S",
        description="after that long without its result a batch is consumed later",
    )
    max_reconsume_times: int = Field(
        16,
        ge=0,
        validation_alias="CREDIT_MAX_RECONSUME_TIMES",
        description="redeliveries of a message before it goes to the dead-letter topic",
    )
