"""What the settings of all our processes share: how a setting is named, and kinds of values that are checked at once."""

import inspect
import ipaddress
from typing import Annotated, Any

from pydantic import AfterValidator, SecretStr
from pydantic_settings import BaseSettings, EnvSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from service_runtime.database_url import parse_database_url


class NamedSettings(BaseSettings):
    """Base of the settings of a process. Each field has one name, its alias: ORDER_HTTP_PORT, and the flag --order-http-port.

    Nothing else in the environment counts, neither a field's own name (a DATABASE_URL that is meant for another program) nor a
    name in other letters (order_http_port).
    """

    model_config = SettingsConfigDict(
        cli_kebab_case=True, cli_implicit_flags=True, cli_hide_none_type=True, extra="ignore", hide_input_in_errors=True
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        """Shows the class's docstring in --help without the indentation that it has in the source."""
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
        """Flags come first, then the environment, in exactly the documented letters."""
        return init_settings, EnvSettingsSource(settings_cls, case_sensitive=True)


def _database_url(url: SecretStr) -> SecretStr:
    parse_database_url(url.get_secret_value())
    return url


def _address(text: str) -> str:
    """A host name or an address, without the brackets that a URL has around an IPv6 address."""
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
"""A database URL by the rule of `service_runtime.database_url`."""

HostAddress = Annotated[str, AfterValidator(_address)]
"""A host name or an IP address to listen on."""
