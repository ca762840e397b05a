"""What the order service can be told, by environment variable or by flag; `python -m order_service --help` lists it."""

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """The order service: POST /orders places an order in a transaction with the broker.

    Each flag can also be given as an environment variable: --order-database-url is ORDER_DATABASE_URL.
    ROCKETMQ_ACCESS_KEY, ROCKETMQ_SECRET_KEY_FILE, ROCKETMQ_TLS_ENABLE and their like (docs/operations.md) are variables only.
    """

    model_config = SettingsConfigDict(
        cli_prog_name="python -m order_service", cli_kebab_case=True, extra="ignore", populate_by_name=True
    )

    database_url: SecretStr = Field(
        SecretStr("sqlite:///data/orders.db"),
        validation_alias="ORDER_DATABASE_URL",
        description="sqlite:///path or postgresql+psycopg://user:password@host/name; sqlite:///data/orders.db unless given",
    )
    database_start_timeout_s: float = Field(
        30.0, gt=0, validation_alias="ORDER_DATABASE_START_TIMEOUT_S", description="how long to wait for the database at start"
    )
    namesrv_addr: str = Field(
        "127.0.0.1:9876", min_length=1, validation_alias="NAMESRV_ADDR", description="name servers, host:port;host:port"
    )
    send_timeout_ms: int = Field(
        3000, gt=0, validation_alias="ORDER_SEND_TIMEOUT_MS", description="how long the broker may take to store the half message"
    )
    http_host: str = Field("127.0.0.1", validation_alias="ORDER_HTTP_HOST", description="address to listen on")
    http_port: int = Field(8080, ge=0, le=65535, validation_alias="ORDER_HTTP_PORT", description="port to listen on; 0 picks one")
    http_threads: int = Field(16, ge=1, le=512, validation_alias="ORDER_HTTP_THREADS", description="requests served at once")
    order_limit_cents: int = Field(
        1_000_000,
        ge=0,
        validation_alias="ORDER_LIMIT_CENTS",
        description="an order above it fails in its local transaction and is rolled back",
    )
    failpoints: str = Field(
        "", validation_alias="FAILPOINTS", description="where to fail on purpose, e.g. exit-after-local-commit:every=25"
    )
