"""Settings of all our processes: their naming, and those that each service has."""

import inspect
import ipaddress
from typing import Annotated, Any, Self

from pydantic import AfterValidator, AliasGenerator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from rocketmq_broker.known_hosts import KnownHosts, host_of, is_address, split_names
from service_runtime.database.database_url import parse_database_url
from service_runtime.observing.log_format import LogFormat
from service_runtime.settings.secret_settings import secret_url


def _host_names(text: str) -> str:
    for name in split_names(text):
        if not is_address(name) and host_of(name) != name:
            raise ValueError(
                f"{name!r} is no host name: names without http:// and without a port are expected, with commas between"
            )
    return text


HostNames = Annotated[str, AfterValidator(_host_names)]
"""Host names with commas between them."""


def names_beginning_with(prefix: str) -> AliasGenerator:
    """Returns the names of settings without an alias: `http_port` becomes ORDER_HTTP_PORT with the prefix ORDER."""
    return AliasGenerator(validation_alias=lambda field: f"{prefix}_{field.upper()}")


class NamedSettings(BaseSettings):
    """Base of the settings of a process. Each field has one name, its alias: ORDER_HTTP_PORT, and the flag --order-http-port.

    No other variable counts: neither a field's own name (a DATABASE_URL for another program) nor other letters (order_http_port).
    """

    log_format: LogFormat = Field("text", validation_alias="LOG_FORMAT", description="log lines as text, or as JSON objects")
    traces_enabled: bool = Field(
        False, validation_alias="TRACES_ENABLED", description="send OpenTelemetry traces where the OTEL_ variables say"
    )

    model_config = SettingsConfigDict(
        cli_kebab_case=True, cli_implicit_flags=True, cli_hide_none_type=True, extra="ignore", hide_input_in_errors=True
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Removes the source's indentation from the class's docstring, which --help shows."""
        super().__pydantic_init_subclass__(**kwargs)
        cls.__doc__ = inspect.cleandoc(cls.__doc__ or "")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Reads flags first, then the environment, in exactly the documented letters."""
        return init_settings, EnvSettingsSource(settings_cls, case_sensitive=True)


def _database_url(url: SecretStr) -> SecretStr:
    parse_database_url(url.get_secret_value())
    return url


def _address(text: str) -> str:
    """Returns a host name or an address, without a URL's brackets around an IPv6 address."""
    host = text.strip().removeprefix("[").removesuffix("]")
    if ":" in host:
        try:
            ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            raise ValueError("a host name or an address is expected, without http:// and without a port") from None
    elif not host or not all(sign.isalnum() or sign in "-._" for sign in host):
        raise ValueError("a host name or an address is expected; 0.0.0.0 and :: mean all addresses of the machine")
    return host


DatabaseUrl = Annotated[SecretStr, AfterValidator(_database_url)]
"""A database URL by the rule of `service_runtime.database.database_url`."""

HostAddress = Annotated[str, AfterValidator(_address)]
"""A host name or an IP address to listen on."""


HttpPort = Annotated[int, Field(ge=0, le=65535, description="port to listen on; 0 picks one")]

HttpThreads = Annotated[int, Field(ge=8, le=512, description="requests that are worked on at once")]


class DatabaseSettings(NamedSettings):
    """The place of a service's database, and the waits for it."""

    database_url: DatabaseUrl = Field(description="sqlite:///path or postgresql://user:password@host/name")
    database_password_file: str = Field(
        "", description="file that holds the password for the database URL, which holds none then"
    )
    database_start_timeout_s: float = Field(30.0, gt=0, le=86_400, description="how long to wait for the database at start")
    migration_lock_wait_s: float = Field(
        600.0,
        gt=0,
        le=86_400,
        description="how long to try again while others hold the locks that a migration needs, or migrate themselves",
    )

    @model_validator(mode="after")
    def _add_database_password(self) -> Self:
        name = str(type(self).model_fields["database_password_file"].validation_alias)
        self.database_url = secret_url(self.database_url, self.database_password_file, name)
        return self


class ServingDatabaseSettings(DatabaseSettings):
    """The database of a process that serves, and may migrate it before."""

    migrate_on_start: bool = Field(
        True, description="bring the database to this version before serving; without it another version is an error"
    )


class HttpSettings(NamedSettings):
    """The address and limits of a service's HTTP server."""

    http_host: HostAddress = Field("127.0.0.1", description="name or address to listen on")
    http_port: HttpPort
    http_known_hosts: HostNames = Field(
        "",
        description="names that requests may call this service by, beside localhost and its own addresses: shop.example,api",
    )
    http_threads: HttpThreads
    metrics_enabled: bool = Field(False, description="serve metrics for Prometheus at /metrics")
    stop_timeout_s: float = Field(10.0, ge=0, le=3_600, description="how long requests that run may take to end after SIGTERM")

    @property
    def known_hosts(self) -> KnownHosts:
        """The names that requests may use for the service."""
        return KnownHosts.of(self.http_host, self.http_known_hosts)
