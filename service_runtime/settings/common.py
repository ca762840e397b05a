"""The naming of settings, and the settings that all services share."""

import inspect
import ipaddress
import os
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, AliasGenerator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from rocketmq_broker.known_hosts import KnownHosts, host_of, is_address, split_names
from service_runtime.database.database_url import parse_database_url
from service_runtime.observing.log_format import LogFormat
from service_runtime.settings.secret_files import SecretUnusable, read_secret, url_with_password


def _host_names(text: str) -> str:
    for name in split_names(text):
        if not is_address(name) and host_of(name) != name:
            raise ValueError(f"invalid host name {name!r}; use comma-separated names without http:// and without a port")
    return text


HostNames = Annotated[str, AfterValidator(_host_names)]
"""A setting with comma-separated host names."""


def refuse_removed(removed: Mapping[str, str]) -> None:
    """Raises ValueError if a removed setting of an earlier version is still set.

    `removed` maps the names of such settings to advice for the error's text.
    """
    for name, to_do in removed.items():
        if os.environ.get(name):
            raise ValueError(f"{name} was removed; unset it, {to_do}")


def names_beginning_with(prefix: str) -> AliasGenerator:
    """Returns a generator of setting names. With the prefix ORDER, for example, `http_port` becomes ORDER_HTTP_PORT."""
    return AliasGenerator(validation_alias=lambda field: f"{prefix}_{field.upper()}")


def secret_url(url: SecretStr, password_file: str, name: str) -> SecretStr:
    """Returns `url_with_password`. Raises SecretUnusable; the text begins with the variable's `name`."""
    try:
        return SecretStr(url_with_password(url.get_secret_value(), password_file))
    except SecretUnusable as error:
        raise SecretUnusable(f"{name}: {error}") from None


def secret_of(path: str, name: str) -> SecretStr:
    """Returns the file's content, or an empty secret if `path` is empty. Raises SecretUnusable; the text begins with `name`."""
    try:
        return SecretStr(read_secret(path) if path else "")
    except SecretUnusable as error:
        raise SecretUnusable(f"{name}: {error}") from None


class NamedSettings(BaseSettings):
    """Base class of settings. A field is set by the variable of its alias (ORDER_HTTP_PORT) or by a flag (--order-http-port).

    Variables with the field's plain name are ignored (DATABASE_URL may be meant for another program), and so are names in another
    case (order_http_port).
    """

    log_format: LogFormat = Field("text", validation_alias="LOG_FORMAT", description="format of log lines: text or json")
    traces_enabled: bool = Field(
        False, validation_alias="TRACES_ENABLED", description="send OpenTelemetry traces, configured by the OTEL_ variables"
    )

    model_config = SettingsConfigDict(
        cli_kebab_case=True, cli_implicit_flags=True, cli_hide_none_type=True, extra="ignore", hide_input_in_errors=True
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Removes the indentation from the class's docstring, which --help shows."""
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
        """Reads flags first, then environment variables, case-sensitively."""
        return init_settings, EnvSettingsSource(settings_cls, case_sensitive=True)


def _database_url(url: SecretStr) -> SecretStr:
    parse_database_url(url.get_secret_value())
    return url


def _address(text: str) -> str:
    """Returns a host name or an address. Removes the brackets around an IPv6 address."""
    host = text.strip().removeprefix("[").removesuffix("]")
    if ":" in host:
        try:
            ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            raise ValueError("not a host name or an address; use one without http:// and without a port") from None
    elif not host or not all(sign.isalnum() or sign in "-._" for sign in host):
        raise ValueError("not a host name or an address; use 0.0.0.0 or :: for all addresses of the machine")
    return host


DatabaseUrl = Annotated[SecretStr, AfterValidator(_database_url)]
"""A database URL; see `service_runtime.database.database_url`."""

HostAddress = Annotated[str, AfterValidator(_address)]
"""A host name or an IP address to listen on."""


HttpPort = Annotated[int, Field(ge=0, le=65535, description="port to listen on; 0 picks one")]

HttpThreads = Annotated[int, Field(ge=8, le=512, description="maximum number of requests processed at the same time")]


class DatabaseSettings(NamedSettings):
    """The URL of a service's database, and its timeouts."""

    database_url: DatabaseUrl = Field(description="sqlite:///path or postgresql://user:password@host/name")
    database_password_file: str = Field(
        "", description="file with the password for the database URL, which must not contain one then"
    )
    database_start_timeout_s: float = Field(30.0, gt=0, le=86_400, description="time-out for the database at the start")
    migration_lock_wait_s: float = Field(
        600.0,
        gt=0,
        le=86_400,
        description="time-out for the locks that a migration needs",
    )

    @model_validator(mode="after")
    def _add_database_password(self) -> Self:
        name = str(type(self).model_fields["database_password_file"].validation_alias)
        self.database_url = secret_url(self.database_url, self.database_password_file, name)
        return self


class ServingDatabaseSettings(DatabaseSettings):
    """The database settings of a process that serves requests, and may migrate the database first."""

    migrate_on_start: bool = Field(
        True, description="migrate the database to this version before serving; if off, another version is an error"
    )


class HttpSettings(NamedSettings):
    """The address and limits of a service's HTTP server."""

    http_host: HostAddress = Field("127.0.0.1", description="name or address to listen on")
    http_port: HttpPort
    http_known_hosts: HostNames = Field(
        "",
        description="further host names of this service, beside localhost and its addresses: shop.example,api",
    )
    http_threads: HttpThreads
    metrics_enabled: bool = Field(False, description="serve metrics for Prometheus at /metrics")
    drain_s: float = Field(
        0.0, ge=0, le=3_600, description="time after SIGTERM in which requests are still accepted, while /readyz returns 503"
    )
    stop_timeout_s: float = Field(10.0, ge=0, le=3_600, description="grace period for running requests after SIGTERM")

    @property
    def known_hosts(self) -> KnownHosts:
        """The host names that requests may use for the service."""
        return KnownHosts.of(self.http_host, self.http_known_hosts)
